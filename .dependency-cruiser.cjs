const { env } = require('node:process');
const { anyFeature, kernel } = require('./scripts/house/kernel.cjs');

/** What may import what: arrows point down to the core, and a package is entered by its front door. */
const test = '\\.test(-d|-support)?\\.ts$';
const testing = '^packages/core/src/testing/';
const modules = (...names) => `node_modules/(${names.join('|')})/`;
const ours = modules('@millrace', 'millrace');
const allowedInCore = [
  '^packages/core/src/',
  modules(
    'rxjs',
    'ajv',
    '@cfworker/json-schema',
    'fast-deep-equal',
    'immer',
    'jsonrepair',
    'partial-json',
    '@standard-schema/spec',
    'json-schema-to-ts',
  ),
];

const rules = {
  'the-kernel-imports-no-feature': { from: kernel, to: { path: anyFeature } },
  'no-cycles': { from: {}, to: { circular: true } },

  // The exports maps close every other door: what they do not name does not resolve.
  'every-import-resolves': { from: {}, to: { couldNotResolve: true } },
  'relative-imports-stay-in-the-package': {
    from: { path: '^(?:packages/([^/]+)|examples)/' },
    to: { path: '^packages/(?!$1/)' },
  },
  'packages-declare-what-they-import': {
    from: { path: '^packages/', pathNot: test },
    to: {
      dependencyTypes: ['npm-no-pkg', 'npm-dev', 'npm-unknown', 'unknown'],
      // An optional peer is told as one that is not there, too.
      dependencyTypesNot: ['npm-peer'],
    },
  },

  'adapters-know-only-the-core': {
    from: {
      path: '^packages/',
      pathNot: '^packages/(cli|openai|anthropic|fault-suite|flow-suite|crash-suite|bench)/',
    },
    to: {
      path: ours,
      pathNot: modules('@millrace/core', '@millrace/fault-server', '@millrace/postgres-server'),
    },
  },
  'vendors-know-only-the-core-and-wire': {
    from: { path: '^packages/(openai|anthropic)/' },
    to: {
      path: ours,
      pathNot: modules('@millrace/core', '@millrace/wire', '@millrace/fault-server'),
    },
  },
  'only-tests-play-faults': {
    from: { path: '^packages/', pathNot: [test, '^packages/fault-(server|suite)/'] },
    to: { path: modules('@millrace/fault-server') },
  },

  'only-tests-start-databases': {
    from: { path: '^packages/', pathNot: [test, '^packages/crash-suite/'] },
    to: { path: modules('@millrace/postgres-server') },
  },

  'core-imports-little': {
    from: { path: '^packages/core/src/', pathNot: [testing, test] },
    to: { path: '.', pathNot: allowedInCore },
  },
  'core-testing-adds-only-assert': {
    from: { path: testing, pathNot: test },
    to: { path: '.', pathNot: [...allowedInCore, '^assert(/strict)?$'] },
  },
  'schema-packages-give-the-core-only-types': {
    from: { path: '^packages/core/src/', pathNot: test },
    to: {
      path: modules('@standard-schema/spec', 'json-schema-to-ts'),
      dependencyTypesNot: ['type-only'],
    },
  },
  'phases-do-not-know-the-agent': {
    from: { path: '^packages/core/src/phases/', pathNot: test },
    to: { path: '^packages/core/src/(agent|session|call|loop|index)\\.ts$' },
  },
  'production-does-not-import-testing': {
    from: {
      path: '^packages/[^/]+/src/',
      pathNot: [testing, test, '^packages/(fault|flow|crash)-suite/'],
    },
    to: { path: '/testing/' },
  },
};

// The kernel still imports some features, which scripts/house/kernel.cjs lists. `npm run house` counts these imports and keeps
// them below a ceiling; MILLRACE_KERNEL_IMPORTS=1 prints them here.
const reported = {
  'the-kernel-imports-no-feature': { severity: 'warn', from: kernel, to: { path: anyFeature } },
};
const isListed = env.MILLRACE_KERNEL_IMPORTS === '1';

module.exports = {
  forbidden: Object.entries({ ...rules, ...(isListed ? reported : {}) }).map(([name, rule]) => ({
    name,
    severity: 'error',
    ...rule,
  })),
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    exclude: { path: '^examples/(dist|temp)/' },
    doNotFollow: { path: 'node_modules' },
    // Workspaces keep their names, so that they are told apart from relative paths into a package.
    preserveSymlinks: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['types', 'import', 'default'],
      extensions: ['.ts', '.js', '.d.ts'],
    },
  },
};
