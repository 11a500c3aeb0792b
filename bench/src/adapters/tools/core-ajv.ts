import { createRequire } from 'node:module';
import { isRecord } from '../../is-record.js';

/** Compiles a JSON Schema with the very `ajv` that Millrace validates with, and its defaults. */
export const compile = (schema: object): ((value: unknown) => boolean) => {
  const ajv: unknown = createRequire(import.meta.resolve('millrace'))('ajv');
  if (!hasAjv(ajv)) throw new Error(`The package 'ajv' has no 'Ajv'.`);
  return new ajv.Ajv().compile(schema);
};

interface AjvModule {
  readonly Ajv: new () => { compile(schema: object): (value: unknown) => boolean };
}

const hasAjv = (module: unknown): module is AjvModule =>
  (isRecord(module) || typeof module === 'function') &&
  'Ajv' in module &&
  typeof module['Ajv'] === 'function';
