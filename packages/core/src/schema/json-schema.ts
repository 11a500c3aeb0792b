/** A JSON Schema, of draft 7, 2019-09 or 2020-12 as its `$schema` says; 2020-12 where it says nothing. */
export type JsonSchema = Readonly<Record<string, unknown>>;
