/* Checks of the functions in shapes.S. */
#include "awkward.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef long (*unary)(long);

void one_byte(void);
void one_byte_tight(void);
long behind_one_byte(long), three_bytes(long), loop_to_byte_2(long), entered_in_the_middle(long);
long loop_to_entry(long, long), enters_in_the_middle(long), rip_relative_first(long);
long call_first(long), short_call_first(long, unary), jcc_first(void), tail_direct(long);
long tail_conditional(long), tail_register(long, unary), tail_memory(long, unary *);
long tail_rip_memory(long), tail_plt(long), tail_got(long), table_of_offsets(long);
long table_of_addresses(long), flags_result(long, long), ipa_callee(long), ipa_caller(long);
long table_to_entry(long, long), red_zone_leaves(long), red_zone_left_for(long);
long red_zone_jumps(long), split_leaf(long);
long red_zone(long), red_zone_table(long, long), flags_across_table(long), loops_and_jrcxz(long);
long ret_imm16(void), rep_ret(long), bnd_prefixed(long), falls_through(long), fallen_into(long);
unsigned data_after_ret(long);
long get_pc(void), landing_pad(long), landing_pad_short(long), calls_itself(long);
void *own_address(void);
long jumps_to_itself(long, long), raw_system_call(void), string_instructions(long, char *);
long flags_and_frames(long, long), very_large(long);
long unwind_entry_too_short(long);
long carry_in(void *, long, long), carry_out(void *, long, long), chain_in(long, long *);
long push_16(long, long);

static int check_one_byte(void) { one_byte(); one_byte(); return 1; }
static int check_one_byte_tight(void) { one_byte_tight(); return behind_one_byte(4) == 7; }
static int check_three_bytes(void) { return three_bytes(5) == 5; }
static int check_loop_to_entry(void) { return loop_to_entry(100, 0) == 5050; }
static int check_loop_to_byte_2(void) { return loop_to_byte_2(100) == 5050; }
static int check_middle(void) {
  return entered_in_the_middle(5) == 12 && enters_in_the_middle(5) == 17;
}
static int check_static_chain(void) { long chain = 40; return chain_in(2, &chain) == 42; }
static int check_rip_relative_first(void) { return rip_relative_first(1) == 0x12345678a; }
static int check_call_first(void) { return call_first(6) == 7; }
static int check_short_call_first(void) { return short_call_first(6, behind_one_byte) == 14; }
static int check_jcc_first(void) {
  return carry_in(jcc_first, 0, 0) == 1 && carry_in(jcc_first, 1, 0) == 2;
}
static int check_tail_direct(void) { return tail_direct(7) == 8; }
static int check_tail_conditional(void) {
  return tail_conditional(0) == 0 && tail_conditional(5) == 105;
}
static int check_tail_register(void) { return tail_register(1, behind_one_byte) == 5; }
static int check_tail_memory(void) {
  unary table[2] = {three_bytes, behind_one_byte};
  return tail_memory(1, table) == 5;
}
static int check_tail_rip_memory(void) { return tail_rip_memory(1) == 2; }
static int check_tail_library(void) { return tail_plt(-7) == 7 && tail_got(-8) == 8; }
static int check_table_of_offsets(void) {
  static const long expected[] = {11, 22, 33, 44, 55, 99};
  for (long i = 0; i < 6; i++)
    if (table_of_offsets(i) != expected[i])
      return 0;
  return 1;
}
static int check_table_of_addresses(void) {
  return table_of_addresses(0) == 111 && table_of_addresses(1) == 222 &&
         table_of_addresses(2) == 333 && table_of_addresses(77) == 999;
}
static int check_flags_result(void) {
  return carry_out(flags_result, 1, 2) == 1 && carry_out(flags_result, 2, 1) == 0;
}
static int check_ipa(void) { return ipa_caller(8) == 9; }
static int check_red_zone(void) { return red_zone(10) == 33; }
static int check_table_to_entry(void) { return table_to_entry(3, 2) == 23; }
static int check_red_zone_leaves(void) {
  return red_zone_leaves(10) == 21 && red_zone_leaves(11) == 23 && red_zone_left_for(5) == 10;
}
static int check_red_zone_jumps(void) { return red_zone_jumps(10) == 21 && red_zone_jumps(11) == 23; }
static int check_split_leaf(void) {
  return split_leaf(5) == 10 && split_leaf(-5) == -10 && split_leaf(-10) == 990 &&
         split_leaf(-200) == 4294967096;
}
static int check_red_zone_table(void) {
  return red_zone_table(0, 10) == 46 && red_zone_table(1, 10) == 1046;
}
static int check_flags_across_table(void) {
  return carry_in(flags_across_table, 0, 0) == 10 && carry_in(flags_across_table, 1, 0) == 11 &&
         carry_in(flags_across_table, 0, 1) == 20 && carry_in(flags_across_table, 1, 1) == 21;
}
static int check_loops_and_jrcxz(void) {
  return loops_and_jrcxz(0) == 0 && loops_and_jrcxz(50) == 150;
}
static int check_ret_imm16(void) { return push_16(30, 12) == 42; }
static int check_rep_ret(void) { return rep_ret(1) == 5; }
static int check_bnd_prefixed(void) { return bnd_prefixed(1) == 8; }
static int check_falls_through(void) { return falls_through(5) == 16 && fallen_into(5) == 15; }
static int check_data_after_ret(void) {
  return data_after_ret(0) == 0x06060606 && data_after_ret(2) == 0x06060608;
}
static int check_get_pc(void) { return get_pc() == 0; }
static int check_own_address(void) { return own_address() == (void *)own_address; }
static int check_landing_pad(void) { return landing_pad(1) == 10 && landing_pad_short(3) == 3; }
static int check_calls_itself(void) { return calls_itself(3000) == 3000L * 3001 / 2; }
static int check_jumps_to_itself(void) { return jumps_to_itself(9, 0) == 18; }
static int check_raw_system_call(void) { return raw_system_call() == getpid(); }
static int check_string_instructions(void) {
  char text[64], expected[64];
  memset(expected, 0x5a, sizeof expected);
  return string_instructions(64, text) == 64 && !memcmp(text, expected, 64);
}
static int check_flags_and_frames(void) {
  return flags_and_frames(1, 2) == 1 && flags_and_frames(2, 1) == 0;
}
static int check_very_large(void) { return very_large(0) == 72000 && very_large(70000) == 94000; }

static int check_unwind_entry_too_short(void) {
  return unwind_entry_too_short(0) == 5 && unwind_entry_too_short(4) == 15;
}

const struct check shape_checks[] = {
    {"one_byte", check_one_byte, {{"one_byte", 2}}},
    {"one_byte_tight", check_one_byte_tight, {{"one_byte_tight", 1}}},
    {"three_bytes", check_three_bytes, {{0}}},
    {"loop_to_entry", check_loop_to_entry, {{"loop_to_entry", 1}}},
    {"loop_to_byte_2", check_loop_to_byte_2, {{"loop_to_byte_2", 1}}},
    {"entered_in_the_middle", check_middle, {{"enters_in_the_middle", 1}}},
    {"static_chain", check_static_chain, {{"static_chain", 1}, {"chain_in", 1}}},
    {"rip_relative_first", check_rip_relative_first, {{"rip_relative_first", 1}}},
    {"call_first", check_call_first, {{"call_first", 1}}},
    {"short_call_first", check_short_call_first, {{"short_call_first", 1}}},
    {"jcc_first", check_jcc_first, {{"jcc_first", 2}}},
    {"tail_direct", check_tail_direct, {{"tail_direct", 1}}},
    {"tail_conditional", check_tail_conditional, {{"tail_conditional", 2}}},
    {"tail_register", check_tail_register, {{"tail_register", 1}}},
    {"tail_memory", check_tail_memory, {{"tail_memory", 1}}},
    {"tail_rip_memory", check_tail_rip_memory, {{"tail_rip_memory", 1}}},
    {"tail_library", check_tail_library, {{"tail_plt", 1}, {"tail_got", 1}}},
    {"table_of_offsets", check_table_of_offsets, {{"table_of_offsets", 6}}},
    {"table_of_addresses", check_table_of_addresses, {{"table_of_addresses", 4}}},
    {"flags_result", check_flags_result, {{"flags_result", 2}, {"carry_out", 2}}},
    {"ipa", check_ipa, {{"ipa_caller", 1}, {"ipa_callee", 1}}},
    {"red_zone", check_red_zone, {{"red_zone", 1}}},
    {"table_to_entry", check_table_to_entry, {{"table_to_entry", 3}}},
    {"red_zone_leaves", check_red_zone_leaves, {{"red_zone_leaves", 2}, {"red_zone_left_for", 1}}},
    {"red_zone_jumps", check_red_zone_jumps, {{"red_zone_jumps", 2}, {"red_zone_entered", 2}}},
    {"split_leaf", check_split_leaf, {{"split_leaf", 4}, {"beside_cold", 1}}},
    {"red_zone_table", check_red_zone_table, {{"red_zone_table", 2}}},
    {"flags_across_table", check_flags_across_table, {{"flags_across_table", 4}, {"carry_in", 6}}},
    {"loops_and_jrcxz", check_loops_and_jrcxz, {{"loops_and_jrcxz", 2}}},
    {"ret_imm16", check_ret_imm16, {{"ret_imm16", 1}}},
    {"rep_ret", check_rep_ret, {{"rep_ret", 1}}},
    {"bnd_prefixed", check_bnd_prefixed, {{"bnd_prefixed", 1}}},
    {"falls_through", check_falls_through, {{"falls_through", 1}, {"fallen_into", 2}}},
    {"data_after_ret", check_data_after_ret, {{"data_after_ret", 2}}},
    {"get_pc", check_get_pc, {{"get_pc", 1}}},
    {"own_address", check_own_address, {{"own_address", 1}}},
    {"landing_pad", check_landing_pad, {{"landing_pad", 1}, {"landing_pad_short", 1}}},
    {"calls_itself", check_calls_itself, {{"calls_itself", 3001}}},
    {"jumps_to_itself", check_jumps_to_itself, {{"jumps_to_itself", 1}}},
    {"raw_system_call", check_raw_system_call, {{"raw_system_call", 1}}},
    {"string_instructions", check_string_instructions, {{"string_instructions", 1}}},
    {"flags_and_frames", check_flags_and_frames, {{"flags_and_frames", 2}}},
    {"unwind_entry_too_short", check_unwind_entry_too_short, {{"unwind_entry_too_short", 2}}},
    {"very_large", check_very_large, {{"very_large", 2}}},
    {0},
};
