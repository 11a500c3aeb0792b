import { useState } from 'preact/hooks';
import { Icon } from './pieces.js';

type Theme = 'light' | 'dark';

const themeKey = 'millrace.theme';

/** Switches between light and dark. Without a choice, the page follows the system. */
export const ThemeButton = () => {
  const [theme, setTheme] = useState(startTheme);
  const next = theme === 'dark' ? 'light' : 'dark';
  const change = () => {
    show(next);
    setTheme(next);
    try {
      localStorage.setItem(themeKey, next);
    } catch {
      // The choice lasts as long as the page.
    }
  };
  const label = `Use the ${next} theme`;
  return (
    <button type="button" class="icon" aria-label={label} title={label} onClick={change}>
      <Icon name={theme === 'dark' ? 'sun' : 'moon'} />
    </button>
  );
};

const show = (theme: Theme): void => {
  document.documentElement.dataset['theme'] = theme;
};

/** Shows the theme that the site around a frame asks for. */
export const showAsked = (search: string): void => {
  const theme = new URLSearchParams(search).get('theme');
  if (theme === 'dark' || theme === 'light') show(theme);
};

const startTheme = (): Theme => {
  try {
    const chosen = localStorage.getItem(themeKey);
    if (chosen === 'dark' || chosen === 'light') {
      show(chosen);
      return chosen;
    }
  } catch {
    // Storage is forbidden.
  }
  return matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
};
