import type { Metadata } from 'next'
import { missing } from '#app/missing.ts'
import { GUIDES, type GuideName, isGuide, readGuide } from '#lib/api/reference/guides.ts'
import { NoSuchPage } from '../../no-such-page.tsx'
import { startedService } from '../../started-service.ts'
import { Blocks } from '../blocks.tsx'

async function findName(params: PageProps<'/docs/guides/[slug]'>['params']): Promise<GuideName | undefined> {
  const { slug } = await params
  return isGuide(slug) ? slug : undefined
}

export async function generateMetadata({ params }: PageProps<'/docs/guides/[slug]'>): Promise<Metadata> {
  const name = await findName(params)
  return { title: `${name === undefined ? 'Not found' : GUIDES[name]} · API reference` }
}

/** A guide: a file of `docs`. */
export default async function GuidePage({ params }: PageProps<'/docs/guides/[slug]'>) {
  await startedService()
  const name = await findName(params)
  return name === undefined ? missing(<NoSuchPage />) : <Blocks tokens={await readGuide(name)} />
}
