import type { Settings } from './settings.js';

/** Links to the pages of the agents of this site. */
export const AgentPicker = ({ agents }: Pick<Settings, 'agents'>) => {
  const all = Object.entries(agents);
  return all.length === 0 ? null : (
    <ul class="agents" aria-label="Agents">
      {all.map(([name, path]) => (
        <li key={name}>
          <a href={path} aria-current={isHere(path) ? 'page' : undefined}>
            {name}
          </a>
        </li>
      ))}
    </ul>
  );
};

const isHere = (path: string): boolean => withoutSlash(path) === withoutSlash(location.pathname);
const withoutSlash = (path: string): string => path.replace(/\/$/u, '');

/** Chooses the model of the next questions. */
export const ModelPicker = (props: {
  readonly models: readonly string[];
  readonly model: string | undefined;
  readonly choose: (model: string) => void;
}) =>
  props.models.length < 2 ? null : (
    <select
      aria-label="Model"
      value={props.model}
      onChange={(event) => props.choose(event.currentTarget.value)}
    >
      {props.models.map((name) => (
        <option key={name}>{name}</option>
      ))}
    </select>
  );
