/**
 * Why a file may run code without being called by name: who runs it, as a sentence without a full stop. `undefined` for other
 * files. An approver should see it: a shell, an editor or a build runs what is written there, often later and elsewhere.
 */
export const runsCode = (path: string, content: string): string | undefined => {
  const lower = path.toLowerCase();
  const [, why] = runners.find(([form]) => form.test(lower)) ?? [];
  return (
    why ?? (content.startsWith('#!') ? 'It is a script, which may be called by others' : undefined)
  );
};

const runners: readonly (readonly [form: RegExp, why: string])[] = [
  [/(?:^|\/)\.git\//u, 'Git runs its hooks, and the commands of its settings'],
  [/(?:^|\/)\.(?:gitattributes|gitmodules|gitconfig)$/u, 'Git may run the commands that it names'],
  [/(?:^|\/)\.(?:husky|githooks|git-hooks)\//u, 'Git runs it at each commit'],
  [
    /(?:^|\/)(?:\.?lefthook\.ya?ml|\.pre-commit-(?:config|hooks)\.yaml|\.lintstagedrc.*)$/u,
    'Git runs its commands at each commit',
  ],
  [
    /(?:^|\/)(?:package\.json|\.pnpmfile\.c?js|\.yarnrc\.cjs|bunfig\.toml|deno\.jsonc?)$/u,
    'Package managers run its scripts, some of them at the installation',
  ],
  [/(?:^|\/)(?:node_modules|vendor|site-packages)\//u, 'Programs load it as a library'],
  [
    /(?:^|\/)(?:[^/]+\.config|\.[^/]+rc)\.(?:[cm]?[jt]s|json5?|ya?ml)$|(?:^|\/)\.(?:eslint|prettier|babel|mocha|swc|husky|nyc)rc$/u,
    'Tools of development run it, or load the modules that it names',
  ],
  [
    /(?:^|\/)(?:gnu)?makefile$|\.mk$|(?:^|\/)(?:justfile|rakefile|gemfile|gruntfile\.js|gulpfile\.[cm]?[jt]s|taskfile\.ya?ml|jenkinsfile|vagrantfile|podfile|fastfile|brewfile|procfile)$/u,
    'A build or a task runs it',
  ],
  [
    /(?:^|\/)(?:cmakelists\.txt|build\.rs|build\.zig|meson\.build|build\.gradle(?:\.kts)?|settings\.gradle(?:\.kts)?|gradlew|mvnw|pom\.xml|build\.sbt|composer\.json|mix\.exs|pubspec\.yaml)$|\.(?:cmake|csproj|fsproj|vbproj|targets|props|gemspec|podspec)$/u,
    'A build runs it',
  ],
  [
    /(?:^|\/)\.(?:cargo\/config(?:\.toml)?|mvn\/.*|gradle\/.*)$/u,
    'A build runs the programs that it names',
  ],
  [
    /(?:^|\/)(?:setup\.py|conftest\.py|noxfile\.py|tox\.ini|sitecustomize\.py|usercustomize\.py|pyproject\.toml|setup\.cfg)$|\.pth$/u,
    'Python, its packages or its tests run it',
  ],
  [
    /(?:^|\/)\.(?:bash(?:rc|_profile|_login|_logout|_aliases)|profile|z(?:shrc|shenv|profile|login|logout)|kshrc|cshrc|tcshrc|login|inputrc|xinitrc|xprofile|xsession)$|(?:^|\/)config\.fish$/u,
    'A shell runs it when it starts',
  ],
  [
    /(?:^|\/)(?:crontab$|cron\.(?:d|hourly|daily|weekly|monthly)\/)|\.(?:service|timer|desktop|plist)$/u,
    'The system runs it',
  ],
  [
    /(?:^|\/)\.(?:direnv|envrc|tool-versions|mise\.toml)(?:\/|$)/u,
    'A shell runs it in this directory',
  ],
  [
    /(?:^|\/)(?:\.github\/(?:workflows|actions)\/.*|\.gitlab-ci\.yml|\.circleci\/.*|\.travis\.yml|azure-pipelines\.yml|bitbucket-pipelines\.yml|\.drone\.yml|\.buildkite\/.*|appveyor\.yml|cloudbuild\.yaml)$/u,
    'A build server runs it, with its secrets',
  ],
  [
    /(?:^|\/)(?:dockerfile[^/]*|containerfile|[^/]*\.dockerfile|(?:docker-)?compose[^/]*\.ya?ml|\.devcontainer(?:\/.*|\.json))$/u,
    'A container runs it',
  ],
  [
    /(?:^|\/)\.(?:vscode|idea|fleet|zed|nova|vim|nvim|emacs\.d)\/|\.(?:code-workspace|exrc|vimrc|nvimrc)$|(?:^|\/)\.dir-locals\.el$/u,
    'An editor may run the commands that it names',
  ],
  [
    /(?:^|\/)(?:\.?mcp\.json|\.(?:claude|cursor|codex|gemini|windsurf|continue|aider[^/]*|kiro|roo)(?:\/.*|\.json|rc)?|agents?\.md|claude\.md|gemini\.md|\.cursorrules|\.windsurfrules|copilot-instructions\.md|skill\.md)$/u,
    'Coding agents follow it, or start the programs that it names',
  ],
  [
    /\.(?:sh|bash|zsh|fish|ksh|csh|bat|cmd|ps1|psm1|vbs|wsf|command|scpt|applescript|ahk|reg|lnk)$/u,
    'It is a script, which may be called by others',
  ],
];
