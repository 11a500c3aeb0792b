import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { Observable } from 'rxjs';
import { andThen, atOnce, deferWork, type Eventual } from '../flow/eventual.js';
import { MillraceError } from '../values/errors.js';
import { parsedJson } from '../values/json.js';
import { type ContentBlock, textOf } from '../values/message.js';
import { isError, toPlainJson } from '../values/plain-json.js';
import {
  exportsJsonSchema,
  isStandardSchema,
  isValidator,
  type JsonSchema,
  noSchema,
  type OutputSchema,
  standardValidation$,
  type Validation,
  withoutValues,
} from '../values/schema.js';
import { isOutput, thrownOutput, toOutput, type ToolOutput } from '../values/tool-output.js';

/** The results that a schema of `Value` takes, also if they are read-only. */
export type ResultOf<Value> = unknown extends Value ? unknown : Frozen<Value> | ToolOutput | Error;

type Frozen<Value> = Value extends Whole
  ? Value
  : { readonly [Key in keyof Value]: Frozen<Value[Key]> };

type Whole = Date | ((...given: never) => unknown) | symbol | bigint | null | undefined;

/** A result, or what emits it. Other values of the latter are progress, so an Observable may emit any. */
export type ToolReturn<Result> =
  | Result
  | PromiseLike<Result>
  | Observable<unknown>
  | AsyncIterable<unknown, OrNothing<Result>>
  | Generator<unknown, OrNothing<Result>>;

/** A generator that returns nothing has its result as the last value. */
// eslint-disable-next-line @typescript-eslint/no-invalid-void-type -- the type of what such a generator returns
type OrNothing<Result> = Result | void;

/** Converts what a tool returned to its output. */
export type ToOutput = (returned: unknown) => Eventual<ToolOutput>;

interface Results {
  /** The JSON Schema of valid results, if the schema can export it. */
  readonly outputSchema?: JsonSchema;
  /** The parts of the schema that are not checked, and why. */
  readonly warnings?: readonly string[];
  readonly toOutput$: ToOutput;
  /** Checks the content of a result that a client brings. */
  readonly result$?: (content: readonly ContentBlock[]) => Observable<ToolOutput>;
}

/** How what a tool returns becomes its output: validated by the schema, if there is one. Throws `config` if it is not a schema. */
export const resultsOf = (name: string, schema: OutputSchema | undefined): Results => {
  // eslint-disable-next-line rxjs-x/finnish -- without a schema, there is nothing to wait for
  if (schema === undefined) return { toOutput$: toOutput };
  const owner = `tool '${name}': 'output'`;
  if (isValidator(schema)) {
    const { jsonSchema: outputSchema, warnings = [], validation$ } = schema;
    return {
      outputSchema,
      warnings: warnings.map((it) => `${owner}: ${it}`),
      // The schema describes the JSON that the model gets: a date is a string in it.
      ...checks(name, (value) =>
        validation$(value === undefined ? value : parsedJson(toPlainJson(value).json)),
      ),
    };
  }
  if (!isStandardSchema(schema)) throw noSchema(owner);
  const outputSchema = exportedBy(schema);
  return {
    ...(outputSchema && { outputSchema }),
    ...checks(name, (value) => standardValidation$(schema, value)),
  };
};

const checks = (
  name: string,
  check$: (value: unknown) => Observable<Validation>,
): Pick<Results, 'toOutput$' | 'result$'> => {
  const toOutput$ = validResult$(name, check$);
  return {
    toOutput$,
    result$: (content) =>
      deferWork(() => {
        const [first, ...others] = readingsOf(content);
        return others.reduce<Eventual<ToolOutput>>(
          (read, other) => andThen(read, (output) => (output.isError ? toOutput$(other) : output)),
          toOutput$(first),
        );
      }),
  };
};

/** The values that content may stand for: text may be JSON, or a string. */
const readingsOf = (content: readonly ContentBlock[]): readonly unknown[] => {
  if (!content.every(({ type }) => type === 'text')) return [content];
  const text = textOf({ content });
  const value = parsedJson(text);
  return value === undefined ? [text] : [value, text];
};

/** No model sees it: a schema that JSON cannot express, such as one of a date, is validated all the same. */
const exportedBy = (schema: StandardSchemaV1): JsonSchema | undefined => {
  try {
    return exportsJsonSchema(schema)
      ? schema['~standard'].jsonSchema.output({ target: 'draft-2020-12' })
      : undefined;
  } catch {
    return undefined;
  }
};

/** Errors, and outputs with content of their own, are not validated. */
const validResult$ =
  (name: string, check$: (value: unknown) => Observable<Validation>): ToOutput =>
  (returned) =>
    isOutput(returned) || isError(returned)
      ? toOutput(returned)
      : andThen(atOnce(check$(returned)), (result) =>
          result.valid ? toOutput(result.value) : invalidOutput(name, result.problems),
        );

/** The model reads which rules are broken, and the program also the values, which may be secret. */
const invalidOutput = (name: string, problems: readonly string[]): ToolOutput => {
  const listed = (lines: readonly string[]): string =>
    [`The result of ${name} does not match its schema:`, ...lines.map((it) => `- ${it}`)].join(
      '\n',
    );
  return thrownOutput(new MillraceError('tool', listed(problems)), listed(withoutValues(problems)));
};
