import type { ErrorObject } from 'ajv';
import { brief, maxMessage, type Problem } from '../values/schema.js';

/** Returns the problems of an input; empty if it is valid. */
export type Check = (input: unknown) => readonly Problem[];

export const tooIntricate: readonly Problem[] = [{ path: [], message: 'is too complex to check' }];

export const ofError = ({
  instancePath,
  keyword,
  params,
  message,
  data,
}: Omit<ErrorObject, 'schemaPath'>): Problem => {
  const path = instancePath.split('/').slice(1).map(unescaped);
  if (keyword === 'required') {
    return {
      path: [...path, String(params['missingProperty'])],
      message: 'is required, but missing',
    };
  }
  const allowed = keyword === 'enum' ? `: ${brief(params['allowedValues'], maxMessage)}` : '';
  return { path, message: `${message ?? keyword}${allowed}`, received: data };
};

export const unescaped = (key: string): string => key.replaceAll('~1', '/').replaceAll('~0', '~');
