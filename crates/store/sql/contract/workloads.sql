select kind, queue, dead_letter_queue, class, lease_seconds, max_attempts, max_crashes, run_deadline_seconds,
  backoff_first_seconds, backoff_cap_seconds, not_yet_seconds, replay_policies
from spillway.workload;
