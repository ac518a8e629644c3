/*
Copyright 2026 The koord-jobqueue Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package decide

// A head can be admitted in another quota than the one in which it waits. Its request is no demand there, so the
// runtime of that quota can be too small. Therefore the head also fits if the quotas on that path are guaranteed enough
// for it.

// FitsElsewhere says whether the head that was tried last fits with an ask in another quota, together with the claims
// ahead of it.
func (p *Pass[T]) FitsElsewhere(a *Ask) bool {
	v := p.elsewhere(a)
	return v.fits()
}

// Instead has the head that was tried last go on with an ask in another quota, with which it fits.
func (p *Pass[T]) Instead(a *Ask) {
	h := &p.heads[len(p.heads)-1]
	h.ask, h.verdict = a, p.elsewhere(a)
}

func (p *Pass[T]) elsewhere(a *Ask) verdict {
	_, behind := p.behind(a.Route)
	v := p.rooms.verdictOf(a, a.Need, behind)
	if !v.fits() && p.rooms.guarantee(a) {
		return verdict{}
	}
	return v
}

// guarantee says that the quotas of an ask whose limits are shares are guaranteed what it needs, and that there is
// enough of it.
func (r *rooms) guarantee(a *Ask) bool {
	if !a.Route.Shared {
		return false
	}
	for of := range a.parts(a.Need) {
		if r.rights.ShortOfMin(r.all, of) {
			return false
		}
	}
	return true
}
