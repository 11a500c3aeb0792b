import js from '@eslint/js';
import rxjs from 'eslint-plugin-rxjs-x';
import tseslint from 'typescript-eslint';

const tests = ['**/*.test.ts', '**/*.test-d.ts', '**/*.test-support.ts'];

/** Turns off the rules of a plugin that need types. */
const withoutTypes = (plugin) =>
  Object.fromEntries(
    Object.entries(plugin.rules)
      .filter(([, rule]) => rule.meta.docs?.requiresTypeChecking)
      .map(([name]) => [`rxjs-x/${name}`, 'off']),
  );

const syntax = [
  { selector: 'ExportAllDeclaration', message: 'Name what a package exports.' },
  { selector: 'TSEnumDeclaration', message: 'Use a union of string literals.' },
  { selector: 'ExportDefaultDeclaration', message: 'Use a named export.' },
];

/** Programs compute options: `{ timeoutMs: config.timeoutMs }`. Ports pass theirs on to code that expects none. */
const optionsTakeUndefined = {
  selector:
    'ExportNamedDeclaration > TSInterfaceDeclaration[id.name=/^(?!(Load|Append|Request|Part|Prepare|Present)Options$).*(Options|Definition|Defaults|Limits|Policy|ToolRetry|Timeouts)$/] TSPropertySignature[optional=true][typeAnnotation.typeAnnotation.type!=/^TS(Unknown|Never|IndexedAccess)/]:not(:has(TSTypeAnnotation > TSUnionType > TSUndefinedKeyword.types))',
  message: 'Options take `undefined`: write `name?: Type | undefined`.',
};

/** `$` ends the name of an Observable, and of a method that returns one. Operators do not carry it. */
const finnish = (...values) => [
  'error',
  {
    functions: true,
    methods: true,
    properties: true,
    parameters: false,
    variables: false,
    strict: true,
    names: {
      ...Object.fromEntries(values.map((name) => [`^${name}$`, false])),
      // The parts of a step: `perform(step)` reads as what it does.
      '^(perform|begin)$': false,
      '^interruptOn$': false,
      '^operator$': false,
      '^approve$': false,
      '^select$': false,
    },
  },
];

export default tseslint.config(
  { ignores: ['**/dist/**', '**/temp/**'] },
  js.configs.recommended,
  {
    files: ['**/*.ts', '**/*.tsx'],
    extends: [
      tseslint.configs.strictTypeChecked,
      tseslint.configs.stylisticTypeChecked,
      rxjs.configs.strict,
    ],
    languageOptions: {
      parserOptions: { projectService: { allowDefaultProject: ['jest.config.ts'] } },
    },
    rules: {
      '@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'inline-type-imports' }],
      '@typescript-eslint/no-import-type-side-effects': 'error',
      '@typescript-eslint/no-non-null-assertion': 'error',
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/consistent-type-assertions': ['error', { assertionStyle: 'never' }],
      'no-restricted-syntax': ['error', ...syntax],

      'rxjs-x/finnish': finnish(),
      'rxjs-x/no-ignored-default-value': 'off',
      // What an interrupt cuts is gone on with: `takeUntil` is not the end of a pipe here.
      'rxjs-x/no-unsafe-takeuntil': 'off',
      '@typescript-eslint/no-unused-vars': [
        'error',
        { argsIgnorePattern: '^_', varsIgnorePattern: '^_', ignoreRestSiblings: true },
      ],
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: true },
      ],
      // A name means one thing within a file: no value hides another one. A type may have the name of a value.
      '@typescript-eslint/no-shadow': ['error', { ignoreTypeValueShadow: true, allow: ['_'] }],
      'rxjs-x/no-sharereplay': 'error',
      // There are no enums, and no classes to mix up; to look for them takes a sixth of the time.
      '@typescript-eslint/no-unsafe-enum-assignment': 'off',
      '@typescript-eslint/no-unsafe-class-instance-assignment': 'off',
    },
  },
  {
    // Types take most of the time of a lint: the compiler has checked those of tests.
    files: tests,
    extends: [tseslint.configs.disableTypeChecked],
    languageOptions: { parserOptions: { projectService: false } },
    rules: {
      ...withoutTypes(rxjs),
      // It needs types too, but does not declare it.
      'rxjs-x/no-unnecessary-collection': 'off',
      '@typescript-eslint/consistent-type-assertions': 'off',
      // Helpers of tests are named for what they make, as are the values of a test: `model`, `text`, `agent`.
      '@typescript-eslint/no-shadow': 'off',
    },
  },
  {
    // Their frameworks are installed on demand; `npm run compat` checks their types.
    files: ['examples/platforms/*.ts'],
    extends: [tseslint.configs.disableTypeChecked],
    languageOptions: { parserOptions: { projectService: false } },
    rules: {
      ...withoutTypes(rxjs),
      'rxjs-x/no-unnecessary-collection': 'off',
      // Classes of Angular and NestJS.
      '@typescript-eslint/no-extraneous-class': 'off',
    },
  },
  {
    // An example shows one thing: an error may end it, and events that it does not need are passed over.
    files: ['examples/*.ts', 'examples/platforms/*.ts'],
    rules: {
      'rxjs-x/no-ignored-error': 'off',
      '@typescript-eslint/switch-exhaustiveness-check': 'off',
    },
  },
  {
    files: ['scripts/**/*.mjs', 'docs/site/**/*.mjs', 'packages/*/bin.mjs'],
    languageOptions: {
      globals: {
        AbortSignal: 'readonly',
        clearTimeout: 'readonly',
        console: 'readonly',
        fetch: 'readonly',
        performance: 'readonly',
        process: 'readonly',
        queueMicrotask: 'readonly',
        Response: 'readonly',
        setImmediate: 'readonly',
        setTimeout: 'readonly',
        TextDecoder: 'readonly',
        URL: 'readonly',
      },
    },
  },
  {
    files: ['docs/site/.vitepress/theme/*.mjs'],
    languageOptions: {
      globals: {
        clearInterval: 'readonly',
        document: 'readonly',
        matchMedia: 'readonly',
        setInterval: 'readonly',
      },
    },
  },
  {
    files: ['packages/*/src/**/*.ts'],
    ignores: ['packages/cli/**', '**/*.test.ts', '**/*.test-d.ts'],
    rules: { 'no-restricted-syntax': ['error', ...syntax, optionsTakeUndefined] },
  },
  {
    // Functions of the kernel that return a value if it is there.
    files: ['packages/millrace/src/**/*.ts'],
    ignores: tests,
    rules: {
      'rxjs-x/finnish': finnish(
        'work',
        'handle',
        'finish',
        'cut',
        'decideOn',
        'emit',
        'intercept',
        'whenWritten',
      ),
    },
  },
  { files: ['*.config.ts'], rules: { 'no-restricted-syntax': 'off' } },
);
