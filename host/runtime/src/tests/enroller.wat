;; An enroller that only uses its imports.
(module
  (import "abide:cmp/network@0.1.0" "exchange"
    (func $exchange (param i32 i32 i32 i32 i64 i32 i32)))
  (import "abide:cmp/telemetry@0.1.0" "emit"
    (func $emit (param i32 i32 i32 i32 i32 i32 i32)))
  (import "wasi:random/random@0.2.3" "get-random-bytes"
    (func $random (param i64 i32)))
  (import "wasi:clocks/wall-clock@0.2.3" "now"
    (func $now (param i32)))

  (memory (export "memory") 1)
  ;; result::err(transaction-error::not-found)
  (data (i32.const 64) "\01\00\00\00\00\00\00\00" "\02")
  (data (i32.const 256) "http://ca.example/")
  (data (i32.const 288) "begun\0aor not")

  (global $free (mut i32) (i32.const 4096))

  ;; Reports, then asks for more randomness than there is.
  (func (export "abide:cmp/transactions@0.1.0#begin") (param i32) (result i32)
    (call $emit (i32.const 1)
      (i32.const 288) (i32.const 5)
      (i32.const 288) (i32.const 12)
      (i32.const 0) (i32.const 0))
    (call $random (i64.const 1000000) (i32.const 512))
    unreachable)

  (func (export "abide:cmp/transactions@0.1.0#begin-after") (param i32) (result i32)
    unreachable)

  ;; Waits for the network, with limits beyond all reason.
  (func (export "abide:cmp/transactions@0.1.0#resume") (param i32) (result i32)
    (call $exchange
      (i32.const 256) (i32.const 18)
      (i32.const 256) (i32.const 18)
      (i64.const -1) (i32.const -1)
      (i32.const 512))
    (i32.const 64))

  ;; Sixteen random bytes and the time.
  (func (export "abide:cmp/transactions@0.1.0#get") (param i32 i32) (result i32)
    (call $random (i64.const 16) (i32.const 512))
    (call $now (i32.const 528))
    (i32.const 64))

  ;; Never ends.
  (func (export "abide:cmp/transactions@0.1.0#list") (param i32 i32 i32 i32) (result i32)
    (loop $forever (br $forever))
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
  (func (export "abide:cmp/placement@0.1.0#[method]view.standing")
    (param i32 i32 i32 i32 i32 i64) (result i32) unreachable)
  (func (export "abide:cmp/placement@0.1.0#[static]router.create") (param i32 i32) (result i32) unreachable)
  (func (export "abide:cmp/placement@0.1.0#[static]view.create")
    (param i32 i32 i64 i32 i32 i64 i64) (result i32) unreachable)
  (func (export "abide:cmp/placement@0.1.0#explain-owner") (param i32 i32 i32 i32 i32) (result i32) unreachable)
  (func (export "abide:cmp/placement@0.1.0#moves") (param i32 i32 i32 i32 i32 i32 i32) (result i32) unreachable)
  (func (export "abide:cmp/placement@0.1.0#next-epoch")
    (param i32 i32 i64 i32 i32 i32 i32 i64) (result i32) unreachable)
  (func (export "abide:cmp/placement@0.1.0#owner") (param i32 i32 i32 i32 i32) (result i32) unreachable)
  (func (export "abide:cmp/policy@0.1.0#check") (param i32 i32) (result i32) unreachable)
  (func (export "abide:cmp/policy@0.1.0#complete") (param i32 i32) (result i32) unreachable)

  (func (export "abide:cmp/backoff@0.1.0#default-policy") (result i32) unreachable)
  (func (export "abide:cmp/backoff@0.1.0#delay")
    (param i64 i32 i64 i32 i64) (result i32) unreachable)
  (func (export "abide:cmp/backoff@0.1.0#next-attempt")
    (param i64 i32 i64 i32 i64 i32 i64 i64) (result i32) unreachable)

  (func (export "abide:cmp/orders@0.1.0#create") (param i32) (result i32) unreachable)
  (func (export "abide:cmp/orders@0.1.0#get") (param i32 i32) (result i32) unreachable)
  (func (export "abide:cmp/orders@0.1.0#list")
    (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32) unreachable)
  (func (export "abide:cmp/orders@0.1.0#renew")
    (param i32 i32 i32 i32 i32 i32) (result i32) unreachable)
  (func (export "abide:cmp/orders@0.1.0#cancel")
    (param i32 i32 i32 i32 i32 i32) (result i32) unreachable)
  (func (export "abide:cmp/orders@0.1.0#explain")
    (param i32 i32 i32 i32 i64) (result i32) unreachable)

  (func (export "abide:cmp/schedule@0.1.0#claim")
    (param i32 i32 i32 i64 i32 i32) (result i32) unreachable)
  (func (export "abide:cmp/schedule@0.1.0#run") (param i32) (result i32) unreachable)
  (func (export "abide:cmp/schedule@0.1.0#renew") (param i32 i32 i32 i32) (result i32) unreachable)
  (func (export "abide:cmp/schedule@0.1.0#release") (param i32 i32) (result i32) unreachable)
  (func (export "abide:cmp/schedule@0.1.0#tasks")
    (param i32 i32 i32 i32 i32) (result i32) unreachable)
  (func (export "abide:cmp/schedule@0.1.0#replay") (param i32 i32) (result i32) unreachable)

  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
    (local $result i32)
    (local.set $result
      (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
    (global.set $free (i32.add (local.get $result) (local.get 3)))
    (local.get $result)))
