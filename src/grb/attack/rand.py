from grb.attack.injection.random import RND as RND
