// In place: which places of one rank are the same memory when the caller passes one buffer for both.
//
//   all_reduce, broadcast, reduce, all_to_all   input c is output c
//   reduce_scatter, scatter (root)              input rank*K+k is output k
//   all_gather, gather (root)                   input k is output rank*K+k
// as in NCCL's in-place forms.
#pragma once

#include "comm/schedule/schedule.h"

namespace sluice {

// The one name of `place` when input and output are the same memory: places that coincide give the same name.
Place in_place_name(const ScheduleShape& shape, Place place);

// The logical chunk that a place's extent belongs to, in a layout of equal blocks: all_reduce, broadcast and reduce:
// chunk % C; the forms with blocks: the part k = chunk % K. Scratch chunks likewise.
int part_of(const ScheduleShape& shape, Place place);

}  // namespace sluice
