#!/usr/bin/env bash
# CNTK's own end-to-end test of its 1-bit SGD, on the same AN4 labels: what does quantization cost
# after three epochs of 20,480 frames?
#
# 363-512-512-132 sigmoid network, 11 cepstra with deltas and delta-deltas in 11 frames, normalized
# globally; minibatches of 64, 256 and 1024 frames at a rate of 1.0, 0.5 and 0.1 a minibatch, unit
# gain momentum of 0.9, 0.656 and 0.656 a minibatch; three workers, in epoch 1 in float32 and without
# double buffering.
set -euo pipefail

data=
work=$(cd "$(dirname "$0")/.." && pwd)/cntk
seeds="1 2 3"
jobs=2
epoch_frames=20480
usage="usage: $0 --data DIR [options] [key=value ...]
  --data DIR          AN4 as distributed, with cntk/glob_0000.mlf and cntk/state.list
  --work DIR          where data/, feats/ and exp/ go (default: cntk/ beside run.sh)
  --seeds 'N N ...'   one training an arm for each (default: $seeds)
  --jobs N            trainings at a time, of one process and one thread (default $jobs)
  --epoch-frames N    frames of each of the three epochs (default $epoch_frames)
  key=value           further settings of \`asrtrain train\` for all arms
prints cross entropy and frame error by epoch: float32 and 1-bit exchange, with and without double
buffering, and 1-bit without error feedback; written to exp/cntk_ab.md"
. "$(dirname "$0")/../../../recipes/utils/parse_options.sh"
if ! [ -f "$data/cntk/glob_0000.mlf" ]; then
  echo "$0: error: --data '$data': no cntk/glob_0000.mlf there; expected AN4 with CNTK's labels" >&2
  exit 1
fi
data=$(cd "$data" && pwd)
. "$(dirname "$0")/../path.sh"
"$root/tools/setup.sh"
here=$root/egs/an4
mkdir -p "$work"
cd "$work"

python "$here/local/prepare_data.py" --data "$data" --set train --out data/train
global="num_ceps=11 cmvn.by=global"
for part in train dev; do
  name=${part/train/train_nodev}
  asrtrain data-split data=data/train part=$part out="data/$name"
  # shellcheck disable=SC2086  # several settings
  asrtrain feats data="data/$name" $global out="feats/$name"
  global+=" stats=feats/train_nodev"
  asrtrain import-ali data="feats/$name" htk="$data/cntk/glob_0000.mlf" \
    states="$data/cntk/state.list" out="exp/ali_$name"
  asrtrain frames data="feats/$name" ali="exp/ali_$name" out="exp/frames/$name"
done

# "NAME setting ...", one arm a line. In hours of 360,000 frames, epoch 1 is a warm start, of which
# the float32 arm needs none.
warm=exchange.warm_start_hours=$(python -c "print($epoch_frames / 360000)")
arms="float32 exchange=float32
onebit exchange=onebit $warm
float32_double exchange=float32 $warm exchange.double_buffer=true
onebit_double exchange=onebit $warm exchange.double_buffer=true
onebit_no_feedback exchange=onebit $warm exchange.error_feedback=false"

trainings() {
  while read -r name settings; do
    for seed in $seeds; do
      echo "out=exp/$name/seed$seed trainer.seed=$seed $settings"
    done
  done <<<"$arms"
}
trainings | xargs -P "$jobs" -L 1 asrtrain train \
  "--config-dir=$here/conf" +experiment=cntk frames=exp/frames/train_nodev dev=exp/frames/dev \
  trainer.epoch_frames="$epoch_frames" "${overrides[@]}"

names=$(cut -d ' ' -f 1 <<<"$arms")
# shellcheck disable=SC2086  # lists
python "$here/local/cntk_table.py" --exp exp --arms $names --seeds $seeds | tee exp/cntk_ab.md
