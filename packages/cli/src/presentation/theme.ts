import picocolors from 'picocolors';

/** Formatters for terminal text; they return it unchanged if colour is off. */
export type Colors = ReturnType<typeof picocolors.createColors>;

/** The look of terminal output. */
export interface Theme {
  readonly colors: Colors;
  /** Whether the program may use signs beyond ASCII. */
  readonly unicode: boolean;
  /** Maximum line width, in columns. */
  readonly width: number;
  /** Whether it is a terminal, where text wraps between words. Default: false. */
  readonly isTerminal?: boolean;
}

/** The environment that determines a theme. */
export interface ThemeInit {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly platform: string;
  readonly output: { readonly isTTY?: boolean | undefined; readonly columns?: number | undefined };
  /** False if the user disabled colour. */
  readonly color: boolean;
}

/** The width of an output without a known number of columns. */
const defaultWidth = 72;

/** A theme without colour, 72 columns wide. */
export const plainTheme: Theme = {
  colors: picocolors.createColors(false),
  unicode: true,
  width: defaultWidth,
};

/** Creates a theme for an environment. `NO_COLOR` takes precedence over `FORCE_COLOR`, and both over the output. */
export const createTheme = ({ env, platform, output, color }: ThemeInit): Theme => ({
  colors: picocolors.createColors(color && hasColor(env, output)),
  unicode: hasUnicode(env, platform),
  width: widthOf(output),
  isTerminal: output.isTTY === true,
});

/** A terminal reports 0 if it does not know its columns. */
const widthOf = ({ columns = 0 }: ThemeInit['output']): number =>
  columns === 0 ? defaultWidth : Math.min(Math.max(columns, 40), 120);

const hasColor = (env: ThemeInit['env'], { isTTY = false }: ThemeInit['output']): boolean => {
  if (isSet(env['NO_COLOR'])) return false;
  if (isSet(env['FORCE_COLOR'])) return !['0', 'false'].includes(env['FORCE_COLOR'] ?? '');
  return isTTY && env['TERM'] !== 'dumb';
};

/** Without a locale, only the plain Linux console and the legacy Windows console lack Unicode. */
const hasUnicode = (env: ThemeInit['env'], platform: string): boolean => {
  if (platform === 'win32') return isSet(env['WT_SESSION'] ?? env['TERM_PROGRAM']);
  const locale = [env['LC_ALL'], env['LC_CTYPE'], env['LANG']].find(isSet);
  return locale === undefined ? env['TERM'] !== 'linux' : /utf-?8/i.test(locale);
};

const isSet = (value: string | undefined): boolean => value !== undefined && value !== '';
