#!/bin/bash
# A service that lives in a Slurm job; arguments go to `rolloutd serve`:
#
#     sbatch --nodelist NODE scripts/examples/slurm.sh --image IMAGE
#
# Two minutes before its time is over (--signal) Slurm signals this shell, which passes it on: the service takes no new
# work, lets rollouts end for a minute, and hands the rest back to its queue (exit code 75). Then the job is requeued,
# and its next start goes on where this one was. A job that is cancelled (`scancel JOB`) hands back at once and is not
# requeued; the next one that is submitted goes on. The data folder is on the node's own disk, hence --nodelist: on
# another node the queue would be an empty one. Two services on a node need a folder and a port each (ROLLOUTD_DATA_DIR,
# --port).
#SBATCH --job-name=rolloutd
#SBATCH --nodes=1
#SBATCH --time=24:00:00
#SBATCH --signal=B:USR1@120
#SBATCH --requeue
#SBATCH --open-mode=append
set -u
rolloutd=${ROLLOUTD:-dist/rolloutd}
data=${ROLLOUTD_DATA_DIR:-/var/tmp/rolloutd-$(id -u)}

"$rolloutd" serve --data-dir "$data" --drain-ms 60000 "$@" &
service=$!
early=
trap 'early=1; kill -USR1 "$service"' USR1
# A cancel signals every process of the job, those in the sandboxes too, so no rollout is to end on this.
trap 'kill -TERM "$service"' TERM
# A signal ends `wait`, not the service.
wait "$service"
while kill -0 "$service" 2>/dev/null; do wait "$service"; done
wait "$service"
status=$?
if [ "$status" = 75 ] && [ -n "$early" ]; then
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
