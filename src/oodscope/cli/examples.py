"""Examples that stand below the options of each command; a test parses every one of them."""

EXAMPLES = {
    "demo": """
        oodscope demo
        oodscope demo --no-attack --no-generated -o runs/quick
    """,
    "list": """
        oodscope list detectors
        oodscope list metrics --json
    """,
    "evaluate": """
        oodscope evaluate --model resnet18_32 --weights net.pt --benchmark cifar10
        oodscope evaluate --model python:net:build --id-test test --near birds -d msp
        oodscope evaluate --activations id_test=t.npz,near:birds=b.npz -d msp,mls
    """,
    "run": """
        oodscope run job.yaml -o runs
        oodscope run job.yaml --workers 8
        oodscope run demo
    """,
    "plan": """
        oodscope plan job.yaml -o plan --workers 8
        oodscope plan job.yaml -o s3://lab/plan
    """,
    "work": """
        oodscope work plan
        oodscope work plan --share 3/64
    """,
    "status": """
        oodscope status plan --json
    """,
    "cache list": """
        oodscope cache list
        oodscope cache list --kind training
    """,
    "cache verify": """
        oodscope cache verify --remove
    """,
    "cache prune": """
        oodscope cache prune --older 90d --dry-run
        oodscope cache prune --keep-under 500G --kind activations,pixels
    """,
    "crossval": """
        oodscope crossval --id cats --ood birds --model timm:resnet50 -w pretrained
    """,
    "attack": """
        oodscope attack --model resnet18_32 --weights net.pt --benchmark cifar10
        oodscope attack --model python:mynet:build --benchmark cifar10 --preset quick
        oodscope attack --model python:mynet:build --id-test test --far birds -d msp
    """,
    "stream": """
        oodscope stream --model resnet18_32 --weights net.pt --benchmark cifar10
        oodscope stream --activations id_val=v.npz,id_test=t.npz,near:c=c.npz -d msp
        oodscope stream --model python:net:build --benchmark glyphs -d msp,oodd
    """,
    "import": """
        oodscope import id_test=c10.npz near:c100=c100.npz far:svhn=svhn.npz -d msp
        oodscope import --openood msp=msp.csv,knn=knn.csv
        oodscope import --pytorch-ood results.json
    """,
    "convert": """
        oodscope convert runs/RUN --to huggingface --dataset me/bench -o auroc.yaml
        oodscope convert runs/RUN --to every-eval-ever --organization me -o e.json
    """,
    "table": """
        oodscope table
        oodscope table runs/demo/RUN --metric fpr95_id_positive --format latex
    """,
    "compare": """
        oodscope compare runs/RUN --detectors knn,msp
        oodscope compare runs/RUN_A runs/RUN_B --metric fpr95_id_positive
    """,
    "cite": """
        oodscope cite knn vim cifar10
        oodscope cite runs/demo --format text
    """,
    "report": """
        oodscope report runs/demo -o report.html
    """,
    "figure": """
        oodscope figure openood-6 runs/demo -o near-far.pdf
    """,
    "train": """
        oodscope train --recipe logitnorm --benchmark cifar10 --seeds 0,1,2
        oodscope train --benchmark glyphs --model small_cnn --set epochs=10
    """,
    "fit": """
        oodscope fit --model python:mynet:build --id-cal held -d msp -o msp.oodscope
    """,
    "predict": """
        oodscope predict knn.oodscope photo.jpg more --json
        oodscope predict knn.oodscope batch --fdr 0.1 --csid rainy
    """,
    "monitor": """
        oodscope monitor knn.oodscope monday --state camera.json
    """,
    "export": """
        oodscope export knn.oodscope --onnx knn.onnx --images held_out
    """,
    "power": """
        oodscope power runs/mine
        oodscope power runs/seed0 runs/seed1 runs/seed2 --points 0.5
    """,
    "precision": """
        oodscope precision runs/mine --prevalence 0.01
    """,
    "serve": """
        oodscope serve --board board --port 8000
        oodscope serve --board board --submissions
    """,
    "serve predict": """
        oodscope serve predict knn.oodscope --port 8000
    """,
    "serve token add": """
        oodscope serve token add alice --board board
    """,
    "serve token revoke": """
        oodscope serve token revoke alice --board board
    """,
    "serve token list": """
        oodscope serve token list --board board
    """,
    "data list": """
        oodscope data list --root /data
    """,
    "data show": """
        oodscope data show cifar10
    """,
    "data prepare": """
        oodscope data prepare cifar10 --root /data --yes
    """,
    "data pack": """
        oodscope data pack imagenet --size 224 --resize 256 --dry-run
        oodscope data pack cifar10
    """,
    "data check": """
        oodscope data check cifar10 --root /data
    """,
    "data lint": """
        oodscope data lint birds.yaml
        oodscope data lint cifar10 --declaration-only
    """,
    "data audit": """
        oodscope data audit cifar10 --root /data
        oodscope data audit --id-train train --id-test test --near birds -o audit
    """,
    "generate gan": """
        oodscope generate gan --on digits -o digits-gan --minutes 10
    """,
    "generate near": """
        oodscope generate near --id glyphs -o runs/near
        oodscope generate near --id cifar10 --method gan -o runs/near
    """,
    "generate shifted": """
        oodscope generate shifted --id cifar10 -o runs/shifted
    """,
    "generate judge": """
        oodscope generate judge made -m NET=a.pt --judge B=b.pt --judge C=c.pt -o j
    """,
    "generate again": """
        oodscope generate again --recipe runs/near --id glyphs -o runs/near-again
    """,
    "leaderboard submit": """
        oodscope leaderboard submit runs/RUN --method KNN --detector knn
    """,
    "leaderboard verify": """
        oodscope leaderboard verify board
    """,
    "leaderboard rerun": """
        oodscope leaderboard rerun board/knn-run --activations acts
    """,
    "leaderboard supersede": """
        oodscope leaderboard supersede OLD NEW --reason "wrong split" --board board
    """,
    "leaderboard pin": """
        oodscope leaderboard pin runs/RUN --board board
    """,
    "leaderboard publish": """
        oodscope leaderboard publish job.yaml -o acts
    """,
    "leaderboard build": """
        oodscope leaderboard build board -o site
    """,
}
