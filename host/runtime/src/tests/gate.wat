;; A gate that misbehaves in one way per function, and behaves in one.
(module
  (memory (export "memory") 1)
  ;; exponential { base-ms: 3600000, factor-percent: 200, cap-ms: 115200000 }
  (data (i32.const 64)
    "\80\ee\36\00\00\00\00\00" "\c8\00\00\00\00\00\00\00" "\00\d0\dd\06\00\00\00\00")

  ;; Never ends.
  (func (export "abide:cmp/message@0.1.0#decode") (param i32 i32 i32) (result i32)
    (loop $forever (br $forever))
    unreachable)

  ;; Takes memory until it gets no more.
  (func (export "abide:cmp/message@0.1.0#describe") (param i32 i32 i32) (result i32)
    (loop $more
      (br_if $more (i32.ne (memory.grow (i32.const 16)) (i32.const -1))))
    unreachable)

  ;; Fails.
  (func (export "abide:cmp/message@0.1.0#verify")
    (param i32 i32 i32 i32 i32 i32 i32 i64 i32 i32 i32 i32) (result i32)
    unreachable)

  (func (export "abide:cmp/message@0.1.0#check") (param i32 i32 i32) (result i32)
    unreachable)

  (func (export "abide:cmp/message@0.1.0#split") (param i32 i32 i32) (result i32)
    unreachable)

  (func (export "abide:cmp/message@0.1.0#encode") (param i32) (result i32)
    unreachable)

  (func (export "abide:cmp/message@0.1.0#protected-part") (param i32 i32 i32) (result i32)
    unreachable)

  (func (export "abide:cmp/message@0.1.0#mac")
    (param i32 i32 i32 i32 i32 i32) (result i32)
    unreachable)

  (func (export "abide:cmp/message@0.1.0#error-content")
    (param i32 i32 i32 i32 i32) (result i32)
    unreachable)

  ;; Works.
  (func (export "abide:cmp/policy@0.1.0#check") (param i32 i32) (result i32) unreachable)
  (func (export "abide:cmp/policy@0.1.0#complete") (param i32 i32) (result i32) unreachable)
  (func (export "abide:cmp/backoff@0.1.0#default-policy") (result i32)
    (i32.const 64))

  ;; Answers with an address outside its memory.
  (func (export "abide:cmp/backoff@0.1.0#delay")
    (param i64 i32 i64 i32 i64) (result i32)
    (i32.const 0x7fff0000))

  (func (export "abide:cmp/backoff@0.1.0#next-attempt")
    (param i64 i32 i64 i32 i64 i32 i64 i64) (result i32)
    unreachable)

  (func (export "abide:cmp/admission@0.1.0#[dtor]limiter") (param i32) unreachable)
  (func (export "abide:cmp/admission@0.1.0#[dtor]quality") (param i32) unreachable)
  (func (export "abide:cmp/admission@0.1.0#[method]limiter.admit") (param i32) (result i32) unreachable)
  (func (export "abide:cmp/admission@0.1.0#[method]limiter.name")
    (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32) unreachable)
  (func (export "abide:cmp/admission@0.1.0#[method]limiter.place") (param i32) (result i32) unreachable)
  (func (export "abide:cmp/admission@0.1.0#[method]limiter.principals") (param i32) (result i32) unreachable)
  (func (export "abide:cmp/admission@0.1.0#[method]quality.admit")
    (param i32 i32 i32 i32 i32 i32 i64 i64 i64) (result i32) unreachable)
  (func (export "abide:cmp/admission@0.1.0#[method]quality.promote")
    (param i32 i32 i32 i32 i32 i64 i64) (result i32) unreachable)
  (func (export "abide:cmp/admission@0.1.0#[method]quality.stuck") (param i32 i64) (result i32) unreachable)
  (func (export "abide:cmp/admission@0.1.0#[static]limiter.create") (param i32 i32) (result i32) unreachable)
  (func (export "abide:cmp/admission@0.1.0#[static]quality.create") (param i32 i32) (result i32) unreachable)
  (func (export "abide:cmp/admission@0.1.0#answer-of")
    (param i32 i32 i64 i32 i32 i32 i32 i64 i32 i64 i64 i64) (result i32) unreachable)
  (func (export "abide:cmp/admission@0.1.0#headers")
    (param i32 i32 i32 i32 i64 i32 i64 i64) (result i32) unreachable)
  (func (export "abide:cmp/admission@0.1.0#take") (param i32 i32 i32 i32 i32 i64 i32 i64) (result i32) unreachable)
  (func (export "abide:cmp/placement@0.1.0#[dtor]router") (param i32) unreachable)
  (func (export "abide:cmp/placement@0.1.0#[dtor]view") (param i32) unreachable)
  (func (export "abide:cmp/placement@0.1.0#[method]router.explain") (param i32) (result i32) unreachable)
  (func (export "abide:cmp/placement@0.1.0#[method]router.lint") (param i32) (result i32) unreachable)
  (func (export "abide:cmp/placement@0.1.0#[method]router.route") (param i32) (result i32) unreachable)
  (func (export "abide:cmp/placement@0.1.0#[method]view.read")
    (param i32 i64 i32 i32 i64 i64) unreachable)
  (func (export "abide:cmp/placement@0.1.0#[method]view.share") (param i32) (result i32) unreachable)
  (func (export "abide:cmp/placement@0.1.0#[method]view.standing")
    (param i32 i32 i32 i32 i32 i64) (result i32) unreachable)
  (func (export "abide:cmp/placement@0.1.0#[static]router.create") (param i32 i32) (result i32) unreachable)
  (func (export "abide:cmp/placement@0.1.0#[static]view.create")
    (param i32 i32 i64 i32 i32 i64 i64) (result i32) unreachable)
  (func (export "abide:cmp/placement@0.1.0#from-class") (param i32 i32) (result i32) unreachable)
  (func (export "abide:cmp/placement@0.1.0#explain-owner") (param i32 i32 i32 i32 i32) (result i32) unreachable)
  (func (export "abide:cmp/placement@0.1.0#moves") (param i32 i32 i32 i32 i32 i32 i32) (result i32) unreachable)
  (func (export "abide:cmp/placement@0.1.0#next-epoch")
    (param i32 i32 i64 i32 i32 i32 i32 i64) (result i32) unreachable)
  (func (export "abide:cmp/placement@0.1.0#owner") (param i32 i32 i32 i32 i32) (result i32) unreachable)

  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
    (i32.const 1024)))
