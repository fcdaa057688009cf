//===- MaskLogits.cpp -----------------------------------------------------===//
#include "runtime/device/cuda/MaskLogits.h"

namespace llmc::cuda {

namespace {

constexpr unsigned kThreads = 256, kSlices = 32; // of a row, a CTA each
constexpr char kName[] = "llmc_mask_logits";

// CTA c has slice c % 32 of the row rows[c / 32]: tokens thread, thread + 8192, ... of it.
constexpr char kPtx[] = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry llmc_mask_logits(.param .u64 logits, .param .u64 rows, .param .u64 masks, .param .u64 stride, .param .u64 vocab)
{
  .reg .pred %p<4>;
  .reg .b32 %r<14>;
  .reg .b64 %d<12>;
  ld.param.u64 %d1, [logits];
  ld.param.u64 %d2, [rows];
  ld.param.u64 %d3, [masks];
  ld.param.u64 %d4, [stride];
  ld.param.u64 %d5, [vocab];
  cvta.to.global.u64 %d1, %d1;
  cvta.to.global.u64 %d2, %d2;
  cvta.to.global.u64 %d3, %d3;
  mov.u32 %r1, %ctaid.x;
  shr.u32 %r2, %r1, 5;
  and.b32 %r3, %r1, 31;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r3, 256, %r4;
  mul.wide.u32 %d6, %r2, 4;
  add.u64 %d6, %d2, %d6;
  ld.global.u32 %r6, [%d6];
  cvt.u64.u32 %d7, %r6;
  mul.lo.u64 %d7, %d7, %d4;
  shl.b64 %d7, %d7, 2;
  add.u64 %d7, %d1, %d7;
  add.u64 %d8, %d5, 31;
  shr.u64 %d8, %d8, 5;
  cvt.u64.u32 %d9, %r2;
  mul.lo.u64 %d8, %d8, %d9;
  shl.b64 %d8, %d8, 2;
  add.u64 %d8, %d3, %d8;
  cvt.u32.u64 %r7, %d5;
  mov.u32 %r13, 0xff7fffff;
LOOP:
  setp.ge.u32 %p1, %r5, %r7;
  @%p1 bra DONE;
  shr.u32 %r8, %r5, 5;
  mul.wide.u32 %d10, %r8, 4;
  add.u64 %d10, %d8, %d10;
  ld.global.u32 %r9, [%d10];
  and.b32 %r10, %r5, 31;
  shr.u32 %r9, %r9, %r10;
  and.b32 %r9, %r9, 1;
  setp.ne.u32 %p2, %r9, 0;
  @%p2 bra NEXT;
  mul.wide.u32 %d11, %r5, 4;
  add.u64 %d11, %d7, %d11;
  ld.global.u32 %r11, [%d11];
  and.b32 %r12, %r11, 0x7f800000;
  setp.eq.u32 %p3, %r12, 0x7f800000;
  @%p3 bra NEXT;
  st.global.u32 [%d11], %r13;
NEXT:
  add.u32 %r5, %r5, 8192;
  bra LOOP;
DONE:
  ret;
}
)";

} // namespace

MaskLogits::MaskLogits(const Gpu &gpu) : kernel_(gpu, kPtx, kName) {}

void MaskLogits::launch(Pointer logits, uint64_t stride, uint32_t vocab, Pointer rows, Pointer masks, uint32_t count) const {
  uint64_t tokens = vocab;
  void *parameters[] = {&logits, &rows, &masks, &stride, &tokens};
  kernel_.launch(count * kSlices, kThreads, parameters);
}

} // namespace llmc::cuda
