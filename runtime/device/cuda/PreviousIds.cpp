//===- PreviousIds.cpp ----------------------------------------------------===//
#include "runtime/device/cuda/PreviousIds.h"

namespace llmc::cuda {

namespace {

constexpr unsigned kThreads = 128;
constexpr char kName[] = "llmc_previous_ids";

// for (t = thread; t < count; ...) if (ids[t] < 0) ids[t] = max(chosen[-1 - ids[t]], 0). An id of -1 - row is ~row.
constexpr char kPtx[] = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry llmc_previous_ids(.param .u64 ids, .param .u64 chosen, .param .u64 count)
{
  .reg .pred %p<3>;
  .reg .b32 %r<6>;
  .reg .b64 %d<9>;
  ld.param.u64 %d1, [ids];
  ld.param.u64 %d2, [chosen];
  ld.param.u64 %d3, [count];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r1, %r1, %r2, %r3;
  cvt.u64.u32 %d4, %r1;
  setp.ge.u64 %p1, %d4, %d3;
  @%p1 bra DONE;
  cvta.to.global.u64 %d1, %d1;
  cvta.to.global.u64 %d2, %d2;
  shl.b64 %d5, %d4, 2;
  add.u64 %d6, %d1, %d5;
  ld.global.s32 %r4, [%d6];
  setp.ge.s32 %p2, %r4, 0;
  @%p2 bra DONE;
  not.b32 %r4, %r4;
  mul.wide.u32 %d7, %r4, 4;
  add.u64 %d8, %d2, %d7;
  ld.global.s32 %r5, [%d8];
  max.s32 %r5, %r5, 0;
  st.global.s32 [%d6], %r5;
DONE:
  ret;
}
)";

} // namespace

PreviousIds::PreviousIds(const Gpu &gpu) : kernel_(gpu, kPtx, kName) {}

void PreviousIds::launch(Pointer ids, Pointer chosen, uint32_t count) const {
  uint64_t tokens = count;
  void *parameters[] = {&ids, &chosen, &tokens};
  kernel_.launch((count + kThreads - 1) / kThreads, kThreads, parameters);
}

} // namespace llmc::cuda
