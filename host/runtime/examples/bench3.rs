//! x
use abide_host::*;
#[tokio::main(flavor="current_thread")]
async fn main(){
 let mut c=RuntimeConfig::default(); c.cache=Some("/tmp/boot/cache".into());
 let rt=Runtime::new(c).unwrap(); let g=rt.gate(); g.prepare().await.unwrap();
 let n: u32 = std::env::args().nth(1).unwrap().parse().unwrap();
 let w = std::env::args().nth(2).unwrap();
 if w == "call" { for _ in 0..n { g.default_policy().await.unwrap(); } }
 else { let tr=wit::message::Trust::Secret(vec![]); for _ in 0..n { let _=g.verify(b"x",&tr).await; } }
}
