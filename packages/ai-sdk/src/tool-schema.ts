import { type InputSchema, MillraceError } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { isRecord } from 'millrace/values';
import { from, map, type Observable, of, switchMap } from 'rxjs';

/** The symbol of the schemas of `@ai-sdk/provider-utils`, in each of its versions and copies. */
const schemaSymbol = Symbol.for('vercel.ai.schema');

/**
 * The schema of a tool of the AI SDK. A Standard Schema that exports JSON Schema, such as zod's, stays as it is. A schema of the AI
 * SDK is checked against its JSON Schema, and then by its own `validate`.
 */
export const toInputSchema = (schema: unknown, name: string): InputSchema => {
  const given: unknown = isLazy(schema) ? schema() : schema;
  if (!isRecord(given)) throw unusable(name, 'it has no input schema');
  if (schemaSymbol in given) return ofAiSdkSchema(given, name);
  if (isStandard(given)) return given;
  throw unusable(
    name,
    'its input schema neither exports JSON Schema nor is one of the AI SDK: use zod 4, or jsonSchema()',
  );
};

/** A lazy schema of the AI SDK, and no schema that is a function itself, as arktype's are. */
const isLazy = (schema: unknown): schema is () => unknown =>
  typeof schema === 'function' && !('~standard' in schema);

const isStandard = (schema: object): schema is Extract<InputSchema, { '~standard': unknown }> =>
  '~standard' in schema && isRecord(schema['~standard']) && 'jsonSchema' in schema['~standard'];

const ofAiSdkSchema = (
  schema: Readonly<Record<PropertyKey, unknown>>,
  name: string,
): InputSchema => {
  const { jsonSchema: written, validate } = schema;
  if (!isRecord(written) || 'then' in written) {
    throw unusable(name, 'its JSON Schema is not known yet: await it first');
  }
  // The JSON Schema that zod exports is a Standard Schema as well.
  const { '~standard': _, ...rules } = written;
  const validator = jsonSchema(rules);
  if (typeof validate !== 'function') return validator;
  return {
    ...validator,
    validation$: (input, hidden) =>
      validator
        .validation$(input, hidden)
        .pipe(
          switchMap((checked) =>
            checked.valid
              ? validated$(validate, checked.value).pipe(
                  map((own) => (own.valid ? { ...checked, value: own.value } : own)),
                )
              : of(checked),
          ),
        ),
  };
};

type Own =
  | { readonly valid: true; readonly value: unknown }
  | { readonly valid: false; readonly problems: readonly string[] };

const validated$ = (validate: CallableFunction, value: unknown): Observable<Own> => {
  const result: unknown = Reflect.apply(validate, undefined, [value]);
  return from(Promise.resolve(result)).pipe(map(ownResult));
};

const ownResult = (result: unknown): Own => {
  if (!isRecord(result) || result['success'] !== true) {
    const error = isRecord(result) ? result['error'] : undefined;
    const message = isRecord(error) ? error['message'] : undefined;
    const why = typeof message === 'string' ? message.slice(0, maxProblem) : 'is not valid';
    return { valid: false, problems: [`the input: ${why}`] };
  }
  return { valid: true, value: result['value'] };
};

const maxProblem = 500;

export const unusable = (name: string, why: string): MillraceError =>
  new MillraceError('config', `fromAiSdkTools(): the tool '${name}' cannot be used: ${why}.`);
