/** Metadata under the name that tells it from that of others. */
export const millrace = (value: object): Record<string, unknown> => ({ millrace: value });
