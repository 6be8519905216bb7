#!/usr/bin/env bash
# Trains one arm, decodes the dev and the test set with it and scores both.
#
# Acoustic scale and word insertion penalty are chosen on dev and applied to test.
set -euo pipefail

nj=2
config_dir=
usage="usage: $0 [--nj N] [--config-dir DIR] FRAMES FEATS GRAPH OUT [key=value ...]
  FRAMES     folder with the labelled frames train_nodev and dev
  FEATS      folder with the features dev and test
  GRAPH      decoding graph
  OUT        the arm: the network, and beneath it decode_{dev,test} and score_{dev,test}
  key=value  settings of \`asrtrain train\`
  --nj N            decoding jobs (default $nj)
  --config-dir DIR  where +experiment=NAME is looked up"
. "$(dirname "$0")/../utils/parse_options.sh"
if [ ${#positional[@]} -ne 4 ]; then
  echo "$usage" >&2
  exit 1
fi
frames=${positional[0]} feats=${positional[1]} graph=${positional[2]} out=${positional[3]}

asrtrain train ${config_dir:+"--config-dir=$config_dir"} "${overrides[@]}" \
  frames="$frames/train_nodev" dev="$frames/dev" out="$out"
for set in dev test; do
  asrtrain decode data="$feats/$set" graph="$graph" model="$out" out="$out/decode_$set" nj="$nj"
done
asrtrain score data="$feats/dev" decode="$out/decode_dev" out="$out/score_dev"
asrtrain score data="$feats/test" decode="$out/decode_test" choice="$out/score_dev/score.json" \
  out="$out/score_test"
