import { MillraceError } from 'millrace';
import {
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Pair,
  parseDocument,
  visit,
  type YAMLMap,
} from 'yaml';
import type { Skill } from './skill.js';

/** Something wrong with a `SKILL.md`. */
export interface SkillProblem {
  /** An `error` makes the skill unusable; a `warning` does not. */
  readonly severity: 'error' | 'warning';
  /** The line, from 1. */
  readonly line: number;
  readonly message: string;
}

/**
 * Parses a `SKILL.md` of the Agent Skills format: a front matter in YAML with `name` and `description`, optionally
 * `license`, `compatibility`, `metadata` and `allowed-tools`, and instructions in Markdown. Throws a `config` error
 * that names the file and the line. `file` is the name for errors, by default `SKILL.md`.
 */
export const parseSkill = (text: string, file = 'SKILL.md'): Skill => {
  const { skill, problems } = readSkill(text);
  const problem = problems.find(({ severity }) => severity === 'error');
  if (problem === undefined && skill !== undefined) return skill;
  throw new MillraceError('config', `${file}:${problem?.line ?? 1}: ${problem?.message ?? ''}`);
};

/** Checks a `SKILL.md`. Returns errors and warnings by line, or an empty list. Never throws. */
export const checkSkill = (text: string): readonly SkillProblem[] =>
  readSkill(text).problems.toSorted((a, b) => a.line - b.line);

interface Reading {
  readonly skill?: Skill;
  readonly problems: readonly SkillProblem[];
}

/** In characters. */
const maxText = 1_000_000;
const maxFrontMatter = 16_000;
/** The format recommends to move more than that to files. */
const manyLines = 500;

const error = (line: number, message: string): SkillProblem => ({
  severity: 'error',
  line,
  message,
});
const warning = (line: number, message: string): SkillProblem => ({
  severity: 'warning',
  line,
  message,
});

const readSkill = (text: string): Reading => {
  if (text.length > maxText) {
    return { problems: [error(1, `The file has more than ${maxText} characters.`)] };
  }
  const lines = text.replace(/^\ufeff/u, '').split(/\r\n|\r|\n/u);
  if (lines[0]?.trimEnd() !== '---') {
    return {
      problems: [error(1, "The file must start with a front matter: '---', 'name: …', '---'.")],
    };
  }
  const end = lines.findIndex((line, index) => index > 0 && line.trimEnd() === '---');
  if (end < 0) {
    return { problems: [error(1, "The front matter has no end: add a line '---' after it.")] };
  }
  const frontMatter = lines.slice(1, end).join('\n');
  if (frontMatter.length > maxFrontMatter) {
    const message = `The front matter has more than ${maxFrontMatter} characters. Move text to the instructions.`;
    return { problems: [error(1, message)] };
  }
  const body = lines.slice(end + 1);
  const instructions = body.join('\n').trim();
  const { fields, problems } = readFields(frontMatter);
  const bodyProblems = [
    ...(instructions === '' ? [warning(end + 1, 'The skill has no instructions.')] : []),
    ...(body.length > manyLines
      ? [warning(end + 1, `The instructions have ${body.length} lines. Move details to files.`)]
      : []),
  ];
  return { ...skillOf(fields, instructions), problems: [...problems, ...bodyProblems] };
};

const skillOf = (
  { name, description, allowedTools, license, compatibility, metadata }: Fields,
  instructions: string,
): Pick<Reading, 'skill'> =>
  name === undefined || description === undefined
    ? {}
    : {
        skill: {
          ...{ name, description, instructions },
          ...(allowedTools && { allowedTools }),
          ...(license !== undefined && { license }),
          ...(compatibility !== undefined && { compatibility }),
          ...(metadata && { metadata }),
        },
      };

// ---------------------------------------------------------------- the front matter

interface Fields {
  readonly name?: string;
  readonly description?: string;
  readonly license?: string;
  readonly compatibility?: string;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly allowedTools?: readonly string[];
}

interface FieldsReading {
  readonly fields: Fields;
  readonly problems: readonly SkillProblem[];
}

const readFields = (frontMatter: string): FieldsReading => {
  try {
    const lines = new LineCounter();
    const document = parseDocument(frontMatter, {
      lineCounter: lines,
      prettyErrors: false,
      schema: 'core',
      logLevel: 'silent',
    });
    // The first line of the front matter is the second one of the file.
    const lineAt = (offset = 0): number => lines.linePos(offset).line + 1;
    const broken = document.errors.map(({ pos, message }) =>
      message.includes('call stack') ? tooDeep : error(lineAt(pos[0]), message),
    );
    if (broken.length > 0) return { fields: {}, problems: broken };
    // Aliases multiply: a short file could expand to gigabytes.
    const aliases: SkillProblem[] = [];
    visit(document, {
      Alias: (_, node) => {
        aliases.push(
          error(lineAt(node.range?.[0]), 'Aliases (*name) are not allowed. Repeat the value.'),
        );
        return visit.BREAK;
      },
    });
    if (aliases.length > 0) return { fields: {}, problems: aliases };
    if (!isMap(document.contents)) {
      return {
        fields: {},
        problems: [error(2, "The front matter must have fields: 'name: …', 'description: …'.")],
      };
    }
    return fieldsOf(document.contents, lineAt);
  } catch {
    return { fields: {}, problems: [tooDeep] };
  }
};

/** Deep nesting overflows the stack of the parser. */
const tooDeep = error(2, 'The front matter is nested too deeply.');

interface Field {
  readonly line: number;
  /** A scalar or a list of scalars; `undefined` for anything else. */
  readonly value: unknown;
  /** The fields of a map. */
  readonly entries: readonly (readonly [string, unknown])[] | undefined;
}

type Check = (field: Field) => FieldsReading;

const fieldsOf = (map: YAMLMap, lineAt: (offset?: number) => number): FieldsReading => {
  const readings = map.items.map((pair): FieldsReading => {
    const { key } = pair;
    const line = lineAt(isScalar(key) ? key.range?.[0] : undefined);
    const name = isScalar(key) ? String(key.value) : '';
    const check = Object.hasOwn(checks, name) ? checks[name] : undefined;
    if (check === undefined) {
      const known = Object.keys(checks).join(', ');
      const message = `The field '${name.slice(0, 64)}' is unknown and ignored. Known fields: ${known}.`;
      return { fields: {}, problems: [warning(line, message)] };
    }
    return check({ line, value: valueOf(pair), entries: entriesOf(pair) });
  });
  const fields = readings.reduce<Fields>((all, reading) => ({ ...all, ...reading.fields }), {});
  const problems = readings.flatMap((reading) => reading.problems);
  const isGiven = (name: string): boolean =>
    map.items.some(({ key }) => isScalar(key) && key.value === name);
  const missing = ['name', 'description'].filter((name) => !isGiven(name));
  return {
    fields,
    problems: [
      ...problems,
      ...missing.map((name) => error(1, `The front matter has no '${name}'.`)),
    ],
  };
};

const scalarOf = (node: unknown): unknown => (isScalar(node) ? node.value : undefined);

const valueOf = ({ value }: Pair): unknown =>
  isSeq(value) ? value.items.map(scalarOf) : scalarOf(value);

const entriesOf = ({ value }: Pair): Field['entries'] =>
  isMap(value)
    ? value.items.map(({ key, value: item }) => [String(scalarOf(key)), scalarOf(item)] as const)
    : undefined;

const text =
  (name: 'license' | 'compatibility' | 'description', maxLength: number): Check =>
  ({ line, value }) => {
    const isValid = typeof value === 'string' && value.trim() !== '' && value.length <= maxLength;
    if (isValid) return { fields: { [name]: value.trim() }, problems: [] };
    return {
      fields: {},
      problems: [error(line, `'${name}' must be a string of 1 to ${maxLength} characters.`)],
    };
  };

const nameForm = /^[a-z0-9]+(?:-[a-z0-9]+)*$/u;

const checks: Readonly<Record<string, Check>> = {
  name: ({ line, value }) =>
    typeof value === 'string' && value.length <= 64 && nameForm.test(value)
      ? { fields: { name: value }, problems: [] }
      : {
          fields: {},
          problems: [
            error(
              line,
              "'name' must have 1 to 64 lower-case letters, digits and single hyphens, such as 'pdf-forms'.",
            ),
          ],
        },
  description: text('description', 1_024),
  license: text('license', 1_024),
  compatibility: text('compatibility', 500),
  metadata: ({ line, entries }) => {
    const isPlain = entries?.every(([, item]) =>
      ['string', 'number', 'boolean'].includes(typeof item),
    );
    if (entries === undefined || isPlain !== true) {
      return {
        fields: {},
        problems: [error(line, "'metadata' must have strings: 'version: \"1\"'.")],
      };
    }
    const metadata = Object.fromEntries(entries.map(([key, item]) => [key, String(item)]));
    return { fields: { metadata }, problems: [] };
  },
  'allowed-tools': ({ line, value }) => {
    const tools = toolsIn(value);
    if (tools === undefined) {
      return {
        fields: {},
        problems: [error(line, "'allowed-tools' must be names of tools with spaces between them.")],
      };
    }
    const names = tools.map((tool) => tool.replace(/\(.*$/su, ''));
    const pattern = tools.find((tool) => tool.includes('('));
    const loose = `'${pattern}' limits the arguments of a tool, which is not enforced: only the name is.`;
    return {
      fields: { allowedTools: [...new Set(names)] },
      problems: pattern === undefined ? [] : [warning(line, loose)],
    };
  },
};

/** `Read Bash(git:*)`, `Read, Bash(git:*)` or a list of these. */
const toolsIn = (value: unknown): readonly string[] | undefined => {
  if (value === null || value === '') return [];
  if (typeof value === 'string') return value.match(/[^\s,(]+(?:\([^)]*\))?/gu) ?? [];
  if (!Array.isArray(value)) return undefined;
  const isText = (item: unknown): item is string => typeof item === 'string' && item !== '';
  return value.every(isText) ? value.map((item) => item.trim()) : undefined;
};
