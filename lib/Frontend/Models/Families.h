//===- Families.h - one function per model family ---------------*- C++ -*-===//
#ifndef LLMC_LIB_FRONTEND_MODELS_FAMILIES_H
#define LLMC_LIB_FRONTEND_MODELS_FAMILIES_H

namespace llmc {

class ModelBuilder;
struct ModelFacts;

void buildLlama(ModelBuilder &builder, const ModelFacts &facts);

} // namespace llmc

#endif // LLMC_LIB_FRONTEND_MODELS_FAMILIES_H
