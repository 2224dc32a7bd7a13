from grb.attack.injection.fgsm import FGSM as FGSM
