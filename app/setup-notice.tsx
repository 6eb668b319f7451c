import { findMissingVariables } from '#lib/server/missing-variables.ts'

/**
 * The settings that a deployment lacks before a payroll can run, and how to set them. Renders nothing if none is
 * missing.
 */
export async function SetupNotice() {
  const { problem, missing } = await findMissingVariables()
  if (problem === undefined && missing.length === 0) return null
  return (
    <section aria-labelledby="setup" className="mt-10 rounded-lg border border-line bg-surface p-5 shadow-card sm:p-6">
      <h2 id="setup" className="text-base font-semibold">
        {problem === undefined ? 'This deployment is incomplete' : 'This deployment has not started'}
      </h2>
      {problem !== undefined && <p className="mt-1 text-bad">{problem}</p>}
      <dl className="mt-3 divide-y divide-line">
        {missing.map(({ variable, purpose, remedy }) => (
          <div key={variable} className="py-3">
            <dt>
              <code className="font-medium">{variable}</code>
            </dt>
            <dd className="mt-0.5 text-soft">
              {purpose} <span className="text-ink">{remedy}</span>
            </dd>
          </div>
        ))}
      </dl>
      <p className="mt-3 text-[0.8125rem] text-faint">
        Set them in the environment of the deployment (on Vercel: Settings, Environment Variables), and deploy again.
      </p>
    </section>
  )
}
