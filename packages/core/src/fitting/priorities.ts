/** Behind all other interceptors, and in this order: what is put away need not be left out, and what is counted is what is sent. */
export const putAwayAt = 9_000;
export const fitAt = 10_000;
