#!/usr/bin/env bash
# AN4, from features to a verdict: does training with 1-bit gradients cost accuracy?
#
# 948 training utterances of 74 speakers (42 minutes), of which 8 speakers become the dev set; 130
# test utterances of 10 other speakers (773 words). Two networks that differ in one word, exchange=.
set -euo pipefail

data=
work=$(cd "$(dirname "$0")" && pwd)
stage=0
stop_stage=100
nj=2
speakers=0
usage="usage: $0 --data DIR [options] [key=value ...]
  --data DIR        AN4 as distributed: etc/ and either feat/**/*.mfc or wav/**/*.sph|.raw
  --work DIR        where data/, feats/ and exp/ go (default: beside this script)
  --stage N         first stage to run (default 0)
  --stop-stage N    last stage to run
  --nj N            processes of a job (default $nj)
  --speakers N      train on N of the speakers only, for a quick look (default: all)
  key=value         settings of \`asrtrain train\` for both arms, such as trainer.seed=2;
                    \`asrtrain train --help\` lists them
stages: 0 data, 1 features, 2 lexicon and language model, 3 monophone GMM, 4 alignment,
        5 labelled frames, 6 decoding graph, 7 float32 arm, 8 onebit arm, 9 comparison"
. "$(dirname "$0")/../../recipes/utils/parse_options.sh"
if [ ${#positional[@]} -gt 0 ]; then
  echo "$0: error: '${positional[0]}' is no option and no key=value; --help lists them" >&2
  exit 1
fi
if [ -z "$data" ]; then
  echo "$0: error: --data DIR must be given: AN4 as distributed (--help)" >&2
  exit 1
fi
if ! [ -d "$data/etc" ]; then
  echo "$0: error: --data $data: no folder etc/ there; expected AN4 as distributed" >&2
  exit 1
fi
data=$(cd "$data" && pwd)
. "$(dirname "$0")/path.sh"
"$root/tools/setup.sh"
here=$root/egs/an4
mkdir -p "$work"
cd "$work"
# A wrong override is refused here, not when training begins.
asrtrain train "--config-dir=$here/conf" +experiment=an4 "${overrides[@]}" --cfg job >/dev/null

# Announces a stage; false when it lies outside --stage and --stop-stage.
begins() {
  [ "$stage" -le "$1" ] && [ "$stop_stage" -ge "$1" ] && echo "stage $1: $2" >&2
}

if begins 0 "data directories: train_nodev, dev (8 speakers held out), test"; then
  for set in train test; do
    python "$here/local/prepare_data.py" --data "$data" --set "$set" --out "data/$set"
  done
  asrtrain data-split data=data/train part=train out=data/train_all
  asrtrain data-split data=data/train part=dev out=data/dev
  asrtrain data-subset data=data/train_all speakers="$speakers" out=data/train_nodev
  python "$here/local/prepare_lexicon.py" --data "$data" --out data/dict
fi

if begins 1 "features: 13 cepstra, deltas, delta-deltas; normalized by speaker"; then
  for set in train_nodev dev test; do
    asrtrain feats data="data/$set" out="feats/$set" nj="$nj"
  done
fi

if begins 2 "lexicon with optional silence, bigram of the training transcripts"; then
  asrtrain lang dict=data/dict data=data/train_nodev out=exp/lang
  asrtrain lm data=data/train_nodev lang=exp/lang dev=data/dev order=2 out=exp/lm
fi

if begins 3 "monophone GMM-HMM from a flat start"; then
  asrtrain gmm data=feats/train_nodev lang=exp/lang out=exp/mono nj="$nj"
fi

if begins 4 "forced alignment"; then
  for set in train_nodev dev; do
    asrtrain align data="feats/$set" lang=exp/lang model=exp/mono out="exp/mono_ali_$set" nj="$nj"
  done
fi

if begins 5 "labelled frames"; then
  for set in train_nodev dev; do
    asrtrain frames data="feats/$set" ali="exp/mono_ali_$set" out="exp/frames/$set"
  done
fi

if begins 6 "decoding graph"; then
  asrtrain graph lang=exp/lang lm=exp/lm model=exp/mono out=exp/graph
fi

number=7
for exchange in float32 onebit; do
  if begins "$number" "DNN with the $exchange exchange: training, decoding, scoring"; then
    "$root/recipes/steps/train_arm.sh" --nj "$nj" --config-dir "$here/conf" \
      exp/frames feats exp/graph "exp/dnn_$exchange" \
      +experiment=an4 exchange="$exchange" "${overrides[@]}"
  fi
  number=$((number + 1))
done

if begins 9 "comparison"; then
  asrtrain compare baseline=exp/dnn_float32 'arms=[exp/dnn_onebit]' out=exp/compare
  cat exp/compare/compare.md
  echo "written to $work/exp/compare" >&2
fi
