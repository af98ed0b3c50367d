//! x
use abide_host::*; use std::time::Instant;
#[tokio::main(flavor="current_thread")]
async fn main(){
 let mut c=RuntimeConfig::default(); c.cache=Some("/tmp/boot/cache".into());
 let rt=Runtime::new(c).unwrap(); let g=rt.gate(); g.prepare().await.unwrap();
 let mut best=u128::MAX;
 for _ in 0..200 { let t=Instant::now(); for _ in 0..2000 { g.default_policy().await.unwrap(); } best=best.min(t.elapsed().as_nanos()/2000); }
 println!("call best {best} ns");
 let s=tokio::sync::Semaphore::new(4); let m=std::sync::Mutex::new(vec![1u64]);
 let mut best=u128::MAX;
 for _ in 0..200 { let t=Instant::now(); for _ in 0..2000 { let p=s.try_acquire().unwrap(); let x=m.lock().unwrap().pop().unwrap(); m.lock().unwrap().push(x); drop(p); } best=best.min(t.elapsed().as_nanos()/2000); }
 println!("semaphore+2 locks best {best} ns");
 let tr=wit::message::Trust::Secret(vec![]);
 let mut best=u128::MAX;
 for _ in 0..200 { let t=Instant::now(); for _ in 0..100 { let _=g.verify(b"x",&tr).await; } best=best.min(t.elapsed().as_nanos()/100); }
 println!("trap+new instance best {best} ns");
}
