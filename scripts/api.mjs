// Writes the API report of each entry of the package in this directory, or with --check tells what has changed.
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { CompilerState, Extractor, ExtractorConfig } from '@microsoft/api-extractor';

const folder = process.cwd();
const packageJsonFullPath = join(folder, 'package.json');
const { exports } = JSON.parse(readFileSync(packageJsonFullPath, 'utf8'));
const isCheck = process.argv.includes('--check');

const configs = Object.entries(exports)
  .filter(([, entry]) => typeof entry.types === 'string')
  .map(([path, { types }]) =>
    ExtractorConfig.prepare({
      packageJsonFullPath,
      configObjectFullPath: undefined,
      configObject: {
        projectFolder: folder,
        newlineKind: 'lf',
        mainEntryPointFilePath: join(folder, types),
        compiler: { tsconfigFilePath: join(folder, 'tsconfig.json') },
        apiReport: {
          enabled: true,
          reportFolder: folder,
          reportTempFolder: join(folder, 'temp'),
          reportFileName: [basename(folder), ...path.split('/').slice(1)].join('.'),
        },
        docModel: { enabled: false },
        dtsRollup: { enabled: false },
        tsdocMetadata: { enabled: false },
        messages: {
          extractorMessageReporting: {
            'ae-missing-release-tag': { logLevel: 'none' },
            // What a subpath borrows is in the report of the main entry.
            'ae-forgotten-export':
              path === '.'
                ? { logLevel: 'warning', addToApiReportFile: true }
                : { logLevel: 'none' },
          },
        },
      },
    }),
  );

const [main, ...others] = configs;
const compilerState = CompilerState.create(main, {
  additionalEntryPoints: others.map(({ mainEntryPointFilePath }) => mainEntryPointFilePath),
});
for (const config of configs) {
  const { succeeded, apiReportChanged } = Extractor.invoke(config, {
    localBuild: !isCheck,
    messageCallback: (message) => {
      message.handled ||= message.logLevel === 'info' || message.logLevel === 'verbose';
    },
    compilerState,
  });
  if (!succeeded || (isCheck && apiReportChanged)) {
    console.error(`${config.reportFileName ?? config.mainEntryPointFilePath}: npm run api`);
    process.exitCode = 1;
  }
}
