import type { JsonSchema } from 'millrace';
import { type RawJson, rawJson } from '@millrace/wire';
import { strictSchema } from './strict-schema.js';
import { hasNoRefusedKeywords, toolSchema } from './tool-schema.js';

export interface FittedSchema {
  readonly schema: RawJson;
  readonly isStrict: boolean;
}

/** Serializes a schema, in strict form if that is wanted and possible. */
export const fitSchema = (schema: JsonSchema, isStrictWanted: boolean): FittedSchema => {
  const strict = isStrictWanted ? strictSchema(schema) : undefined;
  return { schema: rawJson(JSON.stringify(strict ?? schema)), isStrict: strict !== undefined };
};

/** Serializes the input schema of a tool. Strict mode might forbid keys that keywords in the description allow. */
export const fitToolSchema = (schema: JsonSchema, isStrictWanted: boolean): FittedSchema =>
  fitSchema(toolSchema(schema), isStrictWanted && hasNoRefusedKeywords(schema));
