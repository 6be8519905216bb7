#!/usr/bin/env bash
# Tables 2 and 3 of Seide et al. 2014 in small: networks x ways to train in parallel, and AdaGrad at
# each of its places, several seeds each. WER on test and training-set frame accuracy.
set -euo pipefail

data=
work=$(cd "$(dirname "$0")/.." && pwd)
seeds="1 2 3"
jobs=2
speakers=0
usage="usage: $0 --data DIR [options] [key=value ...]
  --data DIR         AN4 as distributed
  --work DIR         where run.sh's data/, feats/ and exp/ are, made if missing
  --seeds 'N N ...'  one training an arm for each (default: $seeds)
  --jobs N           arms at a time, of one process and one thread (default $jobs)
  --speakers N       train on N of the speakers only, for a quick look (default: all)
  key=value          further settings of \`asrtrain train\` for all arms
arms are in exp/tables/ARM/seedN; the tables are printed and written to exp/tables/tables.md"
. "$(dirname "$0")/../../../recipes/utils/parse_options.sh"
. "$(dirname "$0")/../path.sh"
here=$root/egs/an4
"$here/run.sh" --data "$data" --work "$work" --speakers "$speakers" --stop-stage 6
cd "$work"

# "NAME setting ...", one arm a line. Rates are those of AN4, found once for each kind of network
# with one seed and kept for all ways to train it; normalizing what momentum has smoothed makes
# steps larger, so that place has a lower one. Factors with double buffering diverge at 0.001.
# A warm start of 0.6 hours is the first epoch, as the paper's first day was.
one="exchange=float32 exchange.workers=1"
four="exchange=onebit exchange.workers=4"
double="$four exchange.double_buffer=true"
warm="$double exchange.warm_start_hours=0.6"
sigmoid="model=sigmoid_3x256 schedule.learning_rate=0.004"
relu="model=relu_3x256 schedule.learning_rate=0.0005"
svd="model=svd_3x256 schedule.learning_rate=0.0005 init=exp/tables/sigmoid_one/SEED"
ada="model=sigmoid_3x256 schedule.learning_rate=0.0001"
smooth="model=sigmoid_3x256 schedule.learning_rate=0.00004"
arms="sigmoid_one $sigmoid $one
sigmoid_four $sigmoid $four
sigmoid_double $sigmoid $double
sigmoid_warm $sigmoid $warm
relu_one $relu $one
relu_four $relu $four
relu_double $relu $double
relu_warm $relu $warm
adagrad_smoothed $smooth $one optimizer.adagrad=smoothed
adagrad_raw $ada $one optimizer.adagrad=aggregate
adagrad_partial $ada $four optimizer.adagrad=partial
adagrad_aggregate $ada $four optimizer.adagrad=aggregate
adagrad_double $ada $double optimizer.adagrad=aggregate"
# Fine-tuned from the sigmoid networks, hence afterwards.
svd_arms="svd_one $svd $one
svd_four $svd $four
svd_double $svd $double
svd_warm $svd $warm"

# Trains, decodes and scores the arms of a list, given on standard input.
train_arms() {
  while read -r name settings; do
    for seed in $seeds; do
      echo "exp/tables/$name/seed$seed trainer.seed=$seed ${settings//SEED/seed$seed}"
    done
  done | xargs -P "$jobs" -L 1 "$root/recipes/steps/train_arm.sh" --nj 1 \
    exp/frames feats exp/graph "${common[@]}"
}

common=(trainer.minibatch=512 launch.nproc=1 schedule.max_epochs=12 "${overrides[@]}")
train_arms <<<"$arms"
train_arms <<<"$svd_arms"

# shellcheck disable=SC2086  # a list
python "$here/local/paper_tables.py" --exp exp/tables --seeds $seeds | tee exp/tables/tables.md
