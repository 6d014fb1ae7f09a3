"""What people ask: status, why, causes, story, history, plan, runs, report, drift, secrets. Changes nothing."""
