/* LARS of float32 variables, layer by layer: what no update can be faster than. */

#include <math.h>

void lars(float *w, float *v, const float *g, long n, float rate, float momentum,
          float weight_decay, float eeta)
{
    double ww = 0, gg = 0;
#pragma omp parallel for simd reduction(+ : ww, gg) if (n > 20000)
    for (long i = 0; i < n; i++) {
        ww += w[i] * w[i];
        gg += g[i] * g[i];
    }
    float scaled = rate;
    if (ww > 0 && gg > 0)
        scaled *= eeta * sqrt(ww) / (sqrt(gg) + weight_decay * sqrt(ww));
#pragma omp parallel for simd if (n > 20000)
    for (long i = 0; i < n; i++) {
        v[i] = momentum * v[i] + scaled * (g[i] + weight_decay * w[i]);
        w[i] -= v[i];
    }
}
