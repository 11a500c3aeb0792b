// Skills: instructions for particular tasks that a model reads when a task needs them.
export { checkSkill, parseSkill, type SkillProblem } from './parse-skill.js';
export {
  type LoadedSkill,
  type Skill,
  type SkillList,
  type SkillSource,
  type SkillSummary,
} from './skill.js';
export { pageOf, type PageOptions, skills, type SkillsOptions } from './skills.js';
