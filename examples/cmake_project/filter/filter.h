#ifndef FILTER_H
#define FILTER_H

/* Both have 64 numbers from 0 to 1; filtered has more contrast. 0 if that failed. */
int filter_picture(const float *picture, float *filtered);

#endif
