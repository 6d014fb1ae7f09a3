"""What people ask: status, why, story, history, plan, runs, report, drift. Changes nothing."""
