/** The name of the instrumentation scope. */
export const scopeName = '@millrace/otel';
