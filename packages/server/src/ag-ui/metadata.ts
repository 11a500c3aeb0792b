/** Metadata in the namespace of Millrace. */
export const millrace = (value: object): Record<string, unknown> => ({ millrace: value });

/** The message id of the result of a tool call. */
export const resultIdOf = (toolCallId: string): string => `${toolCallId}/result`;
