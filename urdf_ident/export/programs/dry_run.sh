#!/bin/sh
# ./dry_run.sh ROBOT-IP: the motion at @SHARE@ % of its speed
exec ./follow "$1" motion.csv @SPEED@ dry_run_log.csv
