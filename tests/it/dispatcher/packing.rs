//! The remains of jobs of this machine when they are over.

use super::*;

/// The files of a job's folder, without those of its working folder.
fn records(folder: &JobsFolder, agreement: &Agreement) -> Vec<String> {
    let entries = fs::read_dir(folder.path().join("jobs").join(agreement.id.to_string())).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn folders_are_packed_when_their_agreements_are_over_and_say_what_they_said() {
    block_on(async {
        let folder = folder();
        let mut service = Service::start(&folder).await;
        let quiet = service.place("true", 0, 600).await;
        let writes = service.place("echo said; echo 42 > result", 0, 600).await;
        let runs = service.place("sleep 1000", 0, 600).await;
        for job in [&quiet, &writes] {
            assert_eq!(service.over(job.id).await.outcome, Some(RunOutcome::Completed));
        }
        service.started(runs.id).await;
        let before = records(&folder, &quiet);
        assert!(before.len() > 4, "{before:?}");
        let running = records(&folder, &runs);
        let executor = executor(folder.path());
        let job = |agreement: &Agreement| Run::first(agreement.id);
        let ended = [&quiet, &writes].map(|each| executor.poll(job(each)).unwrap());

        let folders = JobFolders::new(folder.path(), Some(1 << 20)).unwrap();
        let pack = async |service: &Service| folders.pack(&service.store, i64::MAX).await.unwrap();
        assert_eq!(pack(&service).await, 2);
        assert_eq!(pack(&service).await, 0);
        assert_eq!(records(&folder, &quiet), ["claim.json", "end.json"]);
        assert_eq!(
            records(&folder, &writes),
            ["claim.json", "end.json", "stdout", "work"]
        );
        assert_eq!(records(&folder, &runs), running);
        // A service that comes back with an older database asks for the jobs that it knows as running.
        for (job_over, ended) in [&quiet, &writes].into_iter().zip(ended) {
            executor.stop(job(job_over)).unwrap();
            assert_eq!(executor.poll(job(job_over)).unwrap(), ended);
        }
        assert_eq!(records(&folder, &quiet), ["claim.json", "end.json"]);
        service.stop().await;
        service = Service::start(&folder).await;
        folders.enforce_quotas().unwrap();
        assert_eq!(
            service.agreement(quiet.id).await.outcome,
            Some(RunOutcome::Completed)
        );
        let termination = Terminate::of(runs.id, Some("physics".into()));
        service.planner.send(termination).await.unwrap();
        service.over(runs.id).await;
        assert_eq!(pack(&service).await, 1);
        assert_eq!(folders.sweep(&service.store, i64::MAX).await.unwrap(), 3);
        service.stop().await;
    });
}

#[test]
fn folders_go_when_their_time_is_over_and_never_before_their_agreement_is() {
    block_on(async {
        let folder = folder();
        let service = Service::start(&folder).await;
        let over = service.place("echo x > file", 0, 600).await;
        let runs = service.place("sleep 1000", 0, 600).await;
        let ended = service.over(over.id).await.ended.unwrap();
        service.started(runs.id).await;
        // A job with an end that was not reported to the planner yet.
        let unknown = folder.path().join("jobs").join(Uuid::now_v7().to_string());
        fs::create_dir(&unknown).unwrap();
        let end = folder.path().join(format!("jobs/{}/end.json", over.id));
        fs::copy(end, unknown.join("end.json")).unwrap();
        let folders = JobFolders::new(folder.path(), None).unwrap();
        let sweep = async |before| folders.sweep(&service.store, before).await.unwrap();
        assert_eq!(sweep(ended).await, 0);
        assert!(service.file(&over, "file").exists());
        // The remains of an earlier removal that a crash stopped.
        let doomed = folder.path().join("jobs/.half");
        fs::create_dir(&doomed).unwrap();
        assert_eq!(sweep(i64::MAX).await, 1);
        assert!(!service.file(&over, "file").exists());
        assert!(!doomed.exists() && unknown.exists());
        assert!(service.file(&runs, "").exists());
        assert_eq!(sweep(i64::MAX).await, 0);
        let termination = Terminate::of(runs.id, Some("physics".into()));
        service.planner.send(termination).await.unwrap();
        service.over(runs.id).await;
        service.stop().await;
    });
}
