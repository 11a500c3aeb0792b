/** As much of a JSON Schema as samples are made of. */
export interface SchemaOf {
  readonly type?: 'object' | 'array' | 'string' | 'number' | 'integer' | 'boolean';
  readonly properties?: Readonly<Record<string, SchemaOf>>;
  readonly required?: readonly string[];
  readonly items?: SchemaOf;
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
}

type Samples = Readonly<Record<'valid' | 'invalid', readonly unknown[]>>;

/** Makes values that a schema takes, with all its properties and with those alone that it requires, and values that it refuses. */
export const samplesOf = (schema: SchemaOf): Samples => {
  switch (schema.type) {
    case 'object':
      return ofObject(schema);
    case 'array': {
      const { valid, invalid } = samplesOf(schema.items ?? {});
      const few = (schema.minItems ?? 0) > 0 ? [[]] : [];
      return { valid: [valid], invalid: ['text', {}, ...few, ...invalid.map((item) => [item])] };
    }
    case 'string':
      return schema.enum === undefined
        ? { valid: [schema.default ?? 'a text'], invalid: [5, null, ['a text']] }
        : { valid: schema.enum, invalid: ['none of these', 5] };
    case 'boolean':
      return { valid: [true, false], invalid: ['true', 0] };
    case 'number':
    case 'integer': {
      const { minimum: least = 1, maximum: most = least } = schema;
      const beyond = [
        ...(schema.minimum === undefined ? [] : [least - 1]),
        ...(schema.maximum === undefined ? [] : [most + 1]),
      ];
      return { valid: [least, most], invalid: ['1', null, ...beyond] };
    }
    default:
      return { valid: ['anything'], invalid: [] };
  }
};

const ofObject = ({ properties = {}, required = [] }: SchemaOf): Samples => {
  const samples = Object.entries(properties).map(
    ([name, property]) => [name, samplesOf(property)] as const,
  );
  const whole = Object.fromEntries(samples.map(([name, { valid }]) => [name, valid[0]]));
  const without = (...names: readonly string[]) =>
    Object.fromEntries(Object.entries(whole).filter(([name]) => !names.includes(name)));
  const optional = Object.keys(properties).filter((name) => !required.includes(name));
  const isNeeded = (name: string): boolean =>
    required.includes(name) && properties[name]?.default === undefined;
  const each = (kind: keyof Samples) =>
    samples.flatMap(([name, of]) =>
      of[kind]
        // A null for an optional key counts as absent (T5).
        .filter((value) => value !== null || isNeeded(name))
        .map((value) => ({ ...whole, [name]: value })),
    );
  return {
    valid: [whole, without(...optional), ...each('valid')],
    invalid: ['text', null, ['text'], ...required.map((name) => without(name)), ...each('invalid')],
  };
};
