/* The ten pictures, as they lie in the .npy files behind their headers of 128 bytes. */
  .section .rodata
  .globl pictures
  .balign 4
pictures:
  .irp digit, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
  .incbin "../digits/pictures/\digit/input_0.npy", 128
  .endr
