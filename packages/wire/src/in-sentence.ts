/** Formats the name of a vendor for the middle of a sentence: it may be `The server at 127.0.0.1:11434`. */
export const inSentence = (vendor: string): string => vendor.replace(/^The /u, 'the ');
