/** Metadata under the name that tells it from that of others. */
export const millrace = (value: object): Record<string, unknown> => ({ millrace: value });

/** The id of the message that has the result of a tool call. */
export const resultIdOf = (toolCallId: string): string => `${toolCallId}/result`;
