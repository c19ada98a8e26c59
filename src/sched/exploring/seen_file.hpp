// seen_file: the observations of an execution in another process, as a text that grows: a crash
// loses nothing.
//
//     program 5f0c…              its build id
//     turn 9e37… 2 0 17 12 0     maker, nth, run; arrived, begun; runtime (turn_seen)
//     arrival                    a runnable became ready for the first time
//     contested 4                that arrival was not alone when it ran
//     return                     a runnable became ready again
//     contested-return 7         that return was not alone when it ran
//     connection
//     fault-point 0              a place where a fault could happen (choices.hpp)
//     made hold 9e37… 2 0        a hold of held_arrivals, held_connections or faults
//     met 0                      a hold of the plan
//     order FIRST<tab>SECOND     that handler of an actor ran directly after the first one
//     hash 83fe…                 each 1,000 turns
//     story …                    an event of a story (story_event.hpp)
//
// Turns, arrivals and places of faults are written only by an execution that records.
// Thread: any, one at a time.
#pragma once

#include <memory>
#include <string>

#include "sched/exploring/schedule.hpp"

namespace troupe::sched::exploring {

std::string line_of(const turn_seen& turn);
std::string line_of(const handler_order& order);
std::string line_of(fault_point where);
std::string line_of_hash(std::uint64_t hash);
// Ignores a last line that was cut.
std::shared_ptr<execution> read_seen(const std::string& file, const schedule& plan);

}  // namespace troupe::sched::exploring
