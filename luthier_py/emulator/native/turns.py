"""Whose turn it is, and how long it may be: where the schedulers differ, as LLVM IR.

In: nothing. Out: parts of the scheduler's text by name, for waves in their order and at random. Invariant: both define
the same names: the wave %i, and for one that is to have the same turn again, or whose turn is over, what `resume`
becomes. A turn that begins with %i may end with a wave behind it, %i.then (see next_wave).
"""

from __future__ import annotations

BREAK_OFF = """
; A round is broken off, since a wave needs attention.
define internal void @break_off(ptr %group, i64 %wave, i64 %resume, i64 %rounds) {
  put group.wave of %group, %wave
  put group.resume of %group, %resume
  put group.rounds of %group, %rounds
  ret void
}
"""

IN_ORDER = {"name": "luthier_run", "resume": """
define internal i64 @same_again(i64 %i) {
  %doubled = shl i64 %i, 1
  %inside = or i64 %doubled, 1
  ret i64 %inside
}

define internal i64 @another_then(i64 %i) {
  %next = add i64 %i, 1
  %doubled = shl i64 %next, 1
  ret i64 %doubled
}
""", "choice": """
resume:  ; with the wave at which the round was broken off, and the rest of its turn
  %had = get group.resume of %group
  put group.resume of %group, 0
  %whose = lshr i64 %had, 1
  %midway = trunc i64 %had to i1
  %rest = icmp ult i64 %whose, %waves
  br i1 %rest, label %wave, label %tally

wave:
  %i = phi i64 [ %whose, %resume ], [ %i.next, %after ]
  %same = phi i1 [ %midway, %resume ], [ false, %after ]
""", "budget": """
  %budget.had = get wave.budget of %this
  %slice = get group.slice of %group
  %budget = select i1 %same, i64 %budget.had, i64 %slice
  put wave.budget of %this, %budget
""", "enough": """
  %budget.left = get wave.budget of %then
  %enough = icmp slt i64 %budget.left, 0
""", "after": """
after:
  %i.last = phi i64 [ %i, %wave ], [ %i, %meeting ], [ %i.then, %over ]
  %i.next = add i64 %i.last, 1
  %more = icmp ult i64 %i.next, %waves
  br i1 %more, label %wave, label %tally
"""}

# Turns are short, since what goes wrong does so between two accesses; one in 16 is long enough to get somewhere.
AT_RANDOM = {"name": "luthier_run_at_random", "resume": """
define internal i64 @same_again(i64 %i) {
  %behind = add i64 %i, 1
  ret i64 %behind
}

define internal i64 @another_then(i64 %i) {
  ret i64 0
}
""", "choice": """
resume:  ; with the wave whose turn was broken off, and the rest of it
  %had = get group.resume of %group
  put group.resume of %group, 0
  %whose = add i64 %had, -1
  %goes.on.with = icmp ne i64 %had, 0
  br i1 %goes.on.with, label %same, label %another
same:
  %same.offset = mul i64 %whose, $stride
  %same.at = add i64 %first, %same.offset
  %same.wave = inttoptr i64 %same.at to ptr
  %rest = get wave.budget of %same.wave
  put group.budget of %group, %rest
  br label %wave
another:
  %turns = get group.turns of %group
  %none = icmp eq i64 %turns, 0
  br i1 %none, label %stop, label %random.turn
random.turn:  ; Marsaglia's xorshift
  %turns.less = add i64 %turns, -1
  put group.turns of %group, %turns.less
  %old = get group.random of %group
  %old.up = shl i64 %old, 13
  %once = xor i64 %old, %old.up
  %once.down = lshr i64 %once, 7
  %twice = xor i64 %once, %once.down
  %twice.up = shl i64 %twice, 17
  %random = xor i64 %twice, %twice.up
  put group.random of %group, %random
  %upper = lshr i64 %random, 32
  %chosen = urem i64 %upper, %waves
  %short = and i64 %random, 7
  %kind = and i64 %random, 3840
  %is.long = icmp eq i64 %kind, 0
  %long = shl i64 %short, 8
  %ways = select i1 %is.long, i64 %long, i64 %short
  %length = mul i64 %ways, $own_step
  put group.budget of %group, %length
  br label %wave

wave:
  %i = phi i64 [ %whose, %same ], [ %chosen, %random.turn ]
""", "budget": """
  %length.now = get group.budget of %group
  put wave.budget of %this, %length.now
""", "enough": """
  %budget.had = get wave.budget of %this
  %budget.left = sub i64 %budget.had, $own_step
  put wave.budget of %this, %budget.left
  %enough = icmp slt i64 %budget.left, 0
""", "after": """
after:
  br label %tally
"""}
