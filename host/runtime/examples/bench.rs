use abide_host::*; use std::time::Instant; use std::sync::Arc;
#[tokio::main]
async fn main(){
 let t=Instant::now();
 let mut c=RuntimeConfig::default(); c.cache=Some("/tmp/boot/cache".into());
 let rt=Runtime::new(c).unwrap(); println!("runtime {:?} {:?}",t.elapsed(), rt.warnings());
 let t=Instant::now(); let g=rt.gate(); g.prepare().await.unwrap(); println!("prepare {:?}",t.elapsed());
 let t=Instant::now(); g.default_policy().await.unwrap(); println!("first {:?}",t.elapsed());
 let t=Instant::now(); for _ in 0..1000000 { g.default_policy().await.unwrap(); } println!("call {:?}",t.elapsed()/1000000);
 let s=Services{storage:Arc::new(MemoryStorage::new()),network:Arc::new(HttpNetwork::new(HttpConfig::default()).unwrap()),keys:Arc::new(FileKeys::new()),telemetry:Arc::new(NoTelemetry)};
 let e=rt.enroller(s); let t=Instant::now(); e.prepare().await.unwrap(); println!("prepare enroller {:?}",t.elapsed());
 let t=Instant::now(); let _=e.get("00").await; println!("first {:?}",t.elapsed());
 let t=Instant::now(); for _ in 0..100000 { let _=e.get("00").await; } println!("enroller.get (random+now) {:?}",t.elapsed()/100000);
 let tr=wit::message::Trust::Secret(vec![]);
 let t=Instant::now(); for _ in 0..10000 { let _=g.verify(b"x",&tr).await; } println!("verify (trap+instantiate in fixture) {:?}",t.elapsed()/10000);
}
