/** Gives what errors call a vendor for the inside of a sentence: it may be `The server at 127.0.0.1:11434`. */
export const inside = (vendor: string): string => vendor.replace(/^The /u, 'the ');
