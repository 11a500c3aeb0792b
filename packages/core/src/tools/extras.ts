/** Values by name that a tool passes on to a later one, past the model. They are the tools' own, and may be anything. */
export type Extras = Readonly<Record<string, unknown>>;
