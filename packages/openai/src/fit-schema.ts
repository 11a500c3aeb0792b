import type { JsonSchema } from '@millrace/core';
import { type RawJson, rawJson } from '@millrace/wire';
import { strictSchema } from './strict-schema.js';
import { hasNoRefusedKeywords, toolSchema } from './tool-schema.js';

/** A schema as it is sent. */
export interface FittedSchema {
  readonly schema: RawJson;
  readonly isStrict: boolean;
}

/** Writes a schema in the strict form where that is wanted and possible, else as it is. */
export const fitSchema = (schema: JsonSchema, isStrictWanted: boolean): FittedSchema => {
  const strict = isStrictWanted ? strictSchema(schema) : undefined;
  return { schema: rawJson(JSON.stringify(strict ?? schema)), isStrict: strict !== undefined };
};

/** Writes the schema of a tool's input. What of it is told in words may speak of keys that the strict form would refuse. */
export const fitToolSchema = (schema: JsonSchema, isStrictWanted: boolean): FittedSchema =>
  fitSchema(toolSchema(schema), isStrictWanted && hasNoRefusedKeywords(schema));
